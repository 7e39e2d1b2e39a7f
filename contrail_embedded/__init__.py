"""Runs manager, embedded store and agent in one process, for a single host without a cluster."""
