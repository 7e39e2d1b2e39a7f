"""Container and instance ports as the agent stores them."""

import json
from typing import Any

from agent_api.ports.container import ContainerPort, parse_container_ports
from agent_api.ports.instance import InstancePort, parse_instance_ports
from agent_api.ports.table import PortTable
from tests.support.served_agent import instance_port_of, port_of
from tests.support.virtual_machines import SAMPLE_VM, SAMPLE_VMI


def container_port(vmi_uuid: str = SAMPLE_VMI, *, vm_uuid: str = SAMPLE_VM, **other: Any) -> ContainerPort:
    """A port as if posted now; further keys have underscores for hyphens."""
    (port,) = parse_container_ports(json.dumps(port_of(vm_uuid, vmi_uuid, **other)).encode())
    return port


def instance_port(vmi_uuid: str = SAMPLE_VMI, *, vm_uuid: str = SAMPLE_VM, **other: Any) -> InstancePort:
    """A port as if posted now; further keys have underscores for hyphens."""
    (port,) = parse_instance_ports(json.dumps(instance_port_of(vm_uuid, vmi_uuid, **other)).encode())
    return port


def container_ports(table: PortTable) -> list[ContainerPort]:
    """All containers' ports of a table."""
    return [port for port in table.all() if isinstance(port, ContainerPort)]


def instance_ports(table: PortTable) -> list[InstancePort]:
    """All instances' ports of a table."""
    return [port for port in table.all() if isinstance(port, InstancePort)]
