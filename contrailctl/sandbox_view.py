"""What a pod's sandbox looks like once the plugin has made it in thick mode: interface names and default routes.

The plugin works it out by itself, from what the agent tells; this tells operators, and the demo, what to expect.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from contrail_config.objects import DefaultGateway, InterfaceAddress, VirtualMachineInterface

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


def interface_name(index: int, interface: VirtualMachineInterface) -> str:
    """The first is eth0, another one has the name that was asked for, or else one by its position."""
    return "eth0" if index == 0 else interface.interface or f"eth{index}"


def expected_defaults(interfaces: Sequence[VirtualMachineInterface]) -> list[ExpectedDefault]:
    """One per family: through the interface that asks for it, else through the first that has a gateway."""
    return [route for family in (4, 6) for route in _default_of(family, interfaces)]


def _default_of(family: int, interfaces: Sequence[VirtualMachineInterface]) -> Iterator[ExpectedDefault]:
    asking = [index for index, interface in enumerate(interfaces) if family in _COVERED[interface.default_gw]]
    if not asking and interfaces and interfaces[0].default_gw is DefaultGateway.NONE:
        return
    for index in asking or range(len(interfaces)):
        address = _address(family, interfaces[index])
        if address is not None and address.gateway is not None:
            yield ExpectedDefault(family, index, address.gateway)
            return


def _address(family: int, interface: VirtualMachineInterface) -> InterfaceAddress | None:
    return next((address for address in interface.addresses if address.family == family), None)
