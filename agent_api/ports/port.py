"""A plugged port, of either kind; both have the attributes `vmi_uuid`, `vm_uuid`, `vm_name` and `host_ifname`."""

from agent_api.ports.container import ContainerPort
from agent_api.ports.instance import REMOTE, InstancePort

Port = ContainerPort | InstancePort


def has_device(port: Port) -> bool:
    """Tells whether the port is a device of this host, and not one elsewhere."""
    return isinstance(port, ContainerPort) or port.kind != REMOTE
