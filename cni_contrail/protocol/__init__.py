"""The CNI protocol: what a call brings (environment, network configuration) and the documents that answer it."""
