"""The default-gateway rule: which interface of a pod carries the default route of each family.

The CNI plugin applies the same rule to the agent's response. It must not import this package, so a change here needs
the same change in `cni_contrail/interfaces/default_routes.py`.
"""

from collections.abc import Sequence

import msgspec

from contrail_config.objects import DefaultGateway, VirtualMachineInterface


class DefaultRoute(msgspec.Struct, frozen=True):
    """A default route: `family` is 4 or 6, `index` the position of the interface that carries it."""

    family: int
    index: int
    gateway: str


def default_routes(interfaces: Sequence[VirtualMachineInterface]) -> list[DefaultRoute]:
    """Returns the default routes of a pod with these interfaces, at most one per family, IPv4 first.

    Only interfaces that have a gateway of the family qualify. The first one that requests the route gets it; without a
    request, the lowest index does, unless index 0 says `none`.
    """
    routes = (_default_route(interfaces, family) for family in (4, 6))
    return [route for route in routes if route is not None]


def _default_route(interfaces: Sequence[VirtualMachineInterface], family: int) -> DefaultRoute | None:
    qualified = [
        DefaultRoute(family, index, gateway)
        for index, interface in enumerate(interfaces)
        if (gateway := _gateway(interface, family))
    ]
    for route in qualified:
        if _requests(interfaces[route.index], family):
            return route
    return qualified[0] if qualified and interfaces[0].default_gw is not DefaultGateway.NONE else None


def _requests(interface: VirtualMachineInterface, family: int) -> bool:
    return interface.default_gw is not None and family in interface.default_gw.families


def _gateway(interface: VirtualMachineInterface, family: int) -> str | None:
    return next((address.gateway for address in interface.addresses if address.family == family), None)
