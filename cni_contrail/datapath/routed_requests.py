"""Requests that bring the node's routed ports from the state that was found to the desired one; they are not sent here.

They carry out a `routed_plan`, but for the elements of the filter.
"""

from __future__ import annotations

from collections.abc import Iterator

from cni_contrail.datapath import routed_messages as messages
from cni_contrail.datapath.routed_plan import RoutedPlan
from cni_contrail.datapath.routed_state import RoutedState
from cni_contrail.link.addresses import remove_address
from cni_contrail.link.message import NetlinkRequest
from cni_contrail.link.plan import Address


def port_requests(state: RoutedState, difference: RoutedPlan) -> Iterator[tuple[str, NetlinkRequest]]:
    """Requests to change links, addresses, neighbours and routes, each with the link of its port.

    A route comes when the link has all that its packets need, and goes before that.
    """
    for link, settings in difference.set_links.items():
        found = state.entries.settings[link]
        yield link, messages.set_host_end(state.port(link), found.mac, ipv6=settings.ipv6, group=settings.group)
    for link, gateway in sorted(difference.add_gateways):
        yield link, messages.add_gateway(state.port(link), gateway)
    for (link, address), mac in difference.set_neighbours.items():
        yield link, messages.set_neighbour(state.port(link), address, mac)
    for address, link in difference.add_routes.items():
        yield link, messages.add_route(state.port(link), address)
    for address, link in difference.move_routes.items():
        yield link, messages.move_route(state.port(link), address)
    for link, address in sorted(difference.remove_routes):
        yield link, messages.remove_route(state.port(link), address)
    for link, address in sorted(difference.remove_neighbours):
        yield link, messages.remove_neighbour(state.port(link), address)
    for link, gateway in sorted(difference.remove_gateways):
        yield link, remove_address(state.port(link), Address(gateway, 128 if ":" in gateway else 32))
