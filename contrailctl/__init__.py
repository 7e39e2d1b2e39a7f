"""`contrailctl`, the operators' command line."""
