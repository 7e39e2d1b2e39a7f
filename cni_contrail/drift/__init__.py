"""Notifications of the kernel: what another program changes in the node's datapath is found at once.

Whether something is to be repaired is decided by an audit of the network concerned (`datapath`), never here.
"""
