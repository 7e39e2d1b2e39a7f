"""Network of the nodes and the control plane: a bridge in a namespace of its own, where the control plane runs."""

from tests.support.netns import Netns

CONTROL_PLANE = "192.0.2.254"
"""Address of the control plane, the nodes' default gateway."""

MTU = "1600"
"""Room for a pod's packet of 1500 bytes in a tunnel."""


class Fabric:
    """The bridge, with the address of the control plane. `namespace` is where it is."""

    def __init__(self) -> None:
        self.namespace = Netns("fabric")
        self.namespace.ip("link", "add", "fabric", "mtu", MTU, "up", "type", "bridge", "mcast_snooping", "0")
        self.namespace.ip("address", "add", f"{CONTROL_PLANE}/24", "dev", "fabric")

    def connect(self, node: Netns, number: int) -> str:
        """Connects a node by its link `eth0`, and returns its address."""
        address = f"192.0.2.{number}"
        self.namespace.ip("link", "add", f"node{number}", "mtu", MTU, "up", "master", "fabric", "type", "veth",
                          "peer", "name", "eth0", "mtu", MTU, "netns", node.name)  # fmt: skip
        node.ip("link", "set", "eth0", "up")
        node.ip("address", "add", f"{address}/24", "dev", "eth0")
        node.ip("route", "add", "default", "via", CONTROL_PLANE)
        return address

    def close(self) -> None:
        """Deletes the namespace. Idempotent."""
        self.namespace.delete()
