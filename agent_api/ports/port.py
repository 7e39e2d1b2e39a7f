"""A plugged port of either type; both have `vmi_uuid`, `vm_uuid`, `vm_name` and `host_ifname`."""

from agent_api.ports.container import ContainerPort
from agent_api.ports.instance import REMOTE, InstancePort

Port = ContainerPort | InstancePort


def has_device(port: Port) -> bool:
    """Returns whether the port's device is on this host."""
    return isinstance(port, ContainerPort) or port.kind != REMOTE
