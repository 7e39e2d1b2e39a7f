"""`contrailctl check`: finds what keeps the cluster's networks from working, where, and says what to do."""
