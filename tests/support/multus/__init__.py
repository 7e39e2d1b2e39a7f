"""Multus itself: `build` is the Go module that `scripts/multus` makes its three commands from."""
