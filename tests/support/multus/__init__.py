"""Multus: `build` is the Go module from which `scripts/multus` builds its three commands."""
