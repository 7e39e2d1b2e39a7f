"""Served interfaces without an agent: what tests of choosing and planning begin with."""

from collections.abc import Sequence

from cni_contrail.interfaces.served import ServedInterface, ServedList, read_list, read_ports
from tests.support.scripted_agents import Vmi, our_item, stock_item, stock_port


def served_list(vmis: Sequence[Vmi]) -> ServedList:
    """As our agent serves them."""
    return read_list([our_item(vmi) for vmi in vmis])


def stock_list(vmis: Sequence[Vmi], *, told: Sequence[int] = ()) -> ServedList:
    """As a stock agent serves them, with the addresses of those positions that have been told."""
    served = read_list([stock_item(vmi) for vmi in vmis])
    ports = read_ports([stock_port(vmi) for vmi in vmis])
    return served._replace(interfaces=tuple(_with_addresses(each, ports, told) for each in served.interfaces))


def _with_addresses(interface: ServedInterface, ports: dict, told: Sequence[int]) -> ServedInterface:  # type: ignore[type-arg]  # values pass through
    return interface._replace(addresses=ports[interface.uuid]) if interface.position in told else interface
