"""What `contrailctl` shows of a whole cluster, from its API server."""
