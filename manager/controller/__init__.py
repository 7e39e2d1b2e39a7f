"""Keeps the config store as sources of pods and networks want it: work queue, waiting pods, networks, pods."""
