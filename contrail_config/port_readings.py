"""State and counters of a pod's ports, as the agent of its node reports them on request.

Docstrings of these classes are published: they become the descriptions in the CustomResourceDefinitions.
"""

from contrail_config.objects import ConfigObject


class PortDrops(ConfigObject, frozen=True):
    """Packets that were dropped: `spoofing` of the port, the others of its whole network, since its filter was made.

    `network_tunnel` is known at index 0 alone, and `network_mtu` of the other networks.
    """

    spoofing: int
    network_spoofing: int
    network_broadcast: int
    network_tunnel: int | None = None
    network_mtu: int | None = None


class PortCounters(ConfigObject, frozen=True):
    """Packets and bytes that the pod has sent and received by an interface, since its host end was created.

    What was sent includes what was dropped.
    """

    sent_packets: int
    sent_bytes: int
    received_packets: int
    received_bytes: int


class PortReading(ConfigObject, frozen=True):
    """The port of an interface, named by its uuid, whose host end is `link`. `condition` and `reason`: its state.

    `condition` is `Connected`, `Missing`, `Problem`, `Unknown` or `NotPlugged`. `link_namespace` is the network
    namespace of the host end, missing for the node's own. `counters` and `drops` are missing where the datapath has not
    reported them.
    """

    interface: str
    condition: str
    reason: str | None = None
    link: str | None = None
    link_namespace: str | None = None
    container: str | None = None
    counters: PortCounters | None = None
    drops: PortDrops | None = None


class PodPorts(ConfigObject, frozen=True):
    """Ports of a pod, in the order of its interfaces, that were requested of its node.

    `virtual_machine` is the uuid of the pod's virtual machine, `requested` the request that this answers, `counted_at`
    when the counters were read, by the node's clock (RFC 3339); missing where there are none.
    """

    virtual_machine: str
    requested: str
    counted_at: str | None = None
    ports: tuple[PortReading, ...] = ()
