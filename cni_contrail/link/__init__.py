"""Links, addresses and routes in the kernel: created by ADD, removed by DEL, compared by CHECK."""
