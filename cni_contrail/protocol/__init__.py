"""The CNI protocol: a call's environment and network configuration, and the documents that answer it."""
