"""What a pod's sandbox looks like once the plugin has made it in thick mode: interface names and default routes.

The plugin works it out by itself, from what the agent tells; this tells operators, and the demo, what to expect.
"""

from collections.abc import Sequence
from typing import NamedTuple

from contrail_config.objects import DefaultGateway, VirtualMachineInterface

_COVERED = {
    None: (),
    DefaultGateway.NONE: (),
    DefaultGateway.BOTH: (4, 6),
    DefaultGateway.IPV4: (4,),
    DefaultGateway.IPV6: (6,),
}


class ExpectedDefault(NamedTuple):
    """A default route: `family` 4 or 6, the interface's position, and the gateway."""

    family: int
    position: int
    gateway: str


def expected_defaults(interfaces: Sequence[VirtualMachineInterface]) -> list[ExpectedDefault]:
    """One per family: through the interface that asks for it, else through the first that has a gateway.

    No default goes anywhere by itself if the first interface says `none`.
    """
    routes = (_default_of(family, interfaces) for family in (4, 6))
    return [route for route in routes if route]


def _default_of(family: int, interfaces: Sequence[VirtualMachineInterface]) -> ExpectedDefault | None:
    gateways = {position: _gateway(family, interface) for position, interface in enumerate(interfaces)}
    able = [ExpectedDefault(family, position, gateway) for position, gateway in gateways.items() if gateway]
    asking = [route for route in able if family in _COVERED[interfaces[route.position].default_gw]]
    if not asking and interfaces and interfaces[0].default_gw is DefaultGateway.NONE:
        return None
    return next(iter(asking or able), None)


def _gateway(family: int, interface: VirtualMachineInterface) -> str | None:
    return next((address.gateway for address in interface.addresses if address.family == family), None)
