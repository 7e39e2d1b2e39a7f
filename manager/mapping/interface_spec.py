"""An interface before it has addresses."""

import msgspec

from contrail_config.objects import DefaultGateway, VirtualNetwork


class InterfaceSpec(msgspec.Struct, frozen=True):
    """What a pod's request makes of one interface; its index is its position in the list.

    `chosen`: the pod itself chose the network, not its namespace or the configuration. `wishes` are addresses, at most
    one of a family. `default_route`: None if it was not asked for, else the gateways that were (empty: no default route
    at all), which are then served as the interface's own. The other fields are those of `VirtualMachineInterface`.
    """

    network: VirtualNetwork
    chosen: bool = True
    requested_addresses: tuple[str, ...] = ()
    mac: str | None = None
    default_route: tuple[str, ...] | None = None
    nad: str | None = None
    config_name: str | None = None
    interface: str | None = None
    attachment: str | None = None
    default_gw: DefaultGateway | None = None
