"""Inspection: compares what the node's kernel has with what it should have, and probes the way to other nodes.

It changes nothing. The daemon repairs what it finds; an operator wants to see it.
"""
