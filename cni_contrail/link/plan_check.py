"""Whether a plan can be put into messages at all; whether it makes sense is for the kernel to say."""

from __future__ import annotations

from cni_contrail.link import addresses, links, routes
from cni_contrail.link.errors import LinkError
from cni_contrail.link.plan import InterfacePlan


def check_plan(plan: InterfacePlan) -> None:
    """Raises LinkError if a name, MAC, MTU, address, destination or gateway is none; it names interface and value."""
    try:
        links.packed_name(plan.name)
        links.packed_name(plan.host_name)
        links.packed_alias(plan.alias)
        links.packed_mac(plan.mac)
        links.packed_mtu(plan.mtu)
        for address in plan.addresses:
            addresses.packed_with_length(address)
        for route in plan.routes:
            routes.packed_destination(route.destination)
            if route.gateway is not None:
                addresses.packed(route.gateway)
        for default in plan.defaults:
            addresses.packed(default.gateway)
    except ValueError as error:
        raise LinkError(f"{plan.name}: {error}") from error
