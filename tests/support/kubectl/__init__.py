"""kubectl and helm: `build` is the Go module from which `scripts/kubectl` builds them; `client` calls them."""
