"""Benchmarks of the manager on Kubernetes: speed, memory and cost for the API server."""
