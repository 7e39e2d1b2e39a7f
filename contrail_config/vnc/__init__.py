"""Contrail API server: a client of its REST API, and the mapping of config objects to its objects."""
