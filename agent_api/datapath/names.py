"""Names of a network's kernel objects, as clients of this agent find them on the node."""

BRIDGE = "br0"
"""The bridge in each network's namespace."""


def network_namespace(vni: int) -> str:
    """Returns the name of a network's namespace."""
    return f"contrail-{vni}"
