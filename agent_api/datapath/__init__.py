"""Datapath of the node: what its kernel should have, for the process that programs it. Knows no HTTP.

The process with an API token has no capability, and the one with capabilities has no token: this one computes the
desired state (`desired_state`), serves it when it changes (`feed`), and keeps the other's reports (`reports`).
"""
