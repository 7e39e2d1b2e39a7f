"""Mapping of config objects to objects of the Contrail API server, and back: pure functions."""
