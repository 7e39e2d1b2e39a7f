"""Interface lists as agents serve them, without an agent, for tests of selection and planning."""

from collections.abc import Mapping, Sequence

from cni_contrail.interfaces.served import ServedInterface, ServedList, ServedPort, read_list, read_ports
from tests.support.scripted_agents import Vmi, node_agent_item, vrouter_agent_item, vrouter_agent_port


def node_agent_list(vmis: Sequence[Vmi]) -> ServedList:
    """The list that the node agent serves."""
    return read_list([node_agent_item(vmi) for vmi in vmis])


def vrouter_agent_list(vmis: Sequence[Vmi], *, plugged: Sequence[int] = ()) -> ServedList:
    """Interfaces as a Contrail vrouter agent serves them, with the addresses of the plugged positions."""
    served = read_list([vrouter_agent_item(vmi) for vmi in vmis])
    ports = read_ports([vrouter_agent_port(vmi) for vmi in vmis])
    return served._replace(interfaces=tuple(_with_addresses(each, ports, plugged) for each in served.interfaces))


def _with_addresses(
    interface: ServedInterface, ports: Mapping[str, ServedPort], plugged: Sequence[int]
) -> ServedInterface:
    return interface._replace(addresses=ports[interface.uuid].addresses) if interface.position in plugged else interface
