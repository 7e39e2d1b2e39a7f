"""Datapath of the node: what connects the interfaces, and how its kernel objects are named. Knows no HTTP."""
