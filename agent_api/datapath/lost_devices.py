"""Which ports have lost their device, although most devices are in network namespaces that this process cannot see.

Host ends of index 0 are in the node's own namespace, as without a datapath; those of networks are in the namespaces of
their networks, where only the process that programs the kernel sees them: its report names those that are missing.

A virtual machine that no longer exists says nothing of its interfaces: after a crash of the node, pods are deleted in
the cluster, and no DELETE follows when the node returns. Its ports are lost once none of them has a device in the
node's own namespace, where that of index 0 was. Such a port is not in the desired state, so it is mute until then.
"""

from collections.abc import Callable, Collection, Iterable

from agent_api.ports.container import ContainerPort
from agent_api.ports.port import Port
from contrail_config.objects import VirtualMachine

IsMissing = Callable[[int, str], bool]
"""Returns whether the link of a port in the network of a VNI is known to be missing."""


def has_lost_device(
    port: Port,
    *,
    devices: Collection[str],
    siblings: Iterable[Port],
    virtual_machine: VirtualMachine | None,
    is_missing: IsMissing,
) -> bool:
    """Returns whether a port's device is gone, as far as that is known.

    `devices` are those of the ports that are in the node's own namespace, `siblings` all ports of the virtual machine.
    """
    if port.host_ifname in devices:
        return False
    if not isinstance(port, ContainerPort):
        return True
    interfaces = () if virtual_machine is None else virtual_machine.interfaces
    for index, interface in enumerate(interfaces):
        if interface.uuid == port.vmi_uuid and index and interface.vni:
            return is_missing(interface.vni, port.host_ifname)
        if interface.uuid == port.vmi_uuid:
            return True
    return not any(sibling.host_ifname in devices for sibling in siblings)
