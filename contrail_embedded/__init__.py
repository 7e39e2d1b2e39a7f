"""Composes manager, embedded store and agent in one process, for one machine without a cluster."""
