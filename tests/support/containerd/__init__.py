"""containerd: `build` is the Go module from which `scripts/containerd` builds containerd, its shim and `ctr`."""
