"""Follows the agent's desired state of the node's datapath, brings the kernel to it, and reports what was done.

The agent has an API token and no capability; the process that runs this has capabilities and no token.
"""
