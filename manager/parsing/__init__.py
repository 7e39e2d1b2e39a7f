"""Parses what users write: pod annotations and network attachment definitions. Pure functions, no store, no clock."""
