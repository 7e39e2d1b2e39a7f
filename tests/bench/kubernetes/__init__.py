"""What the manager does on Kubernetes: how fast, in what memory, and at what cost to the API server."""
