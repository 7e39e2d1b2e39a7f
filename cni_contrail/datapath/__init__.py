"""Datapath of a node: the kernel objects that carry packets between pods of one virtual network.

Each virtual network has a network namespace of its own on the node (`namespaces`), with a bridge that has the addresses
of the gateways, and a filter that accepts from each port only its own addresses (`filter_rules`). Host ends of pods are
created there. `desired` is what a node should have, as plain data; `network_reconciler` brings the kernel to it.

This package knows the kernel, not the agent and not the store.
"""
