"""Links, addresses and routes in the kernel: what ADD makes and DEL removes."""
