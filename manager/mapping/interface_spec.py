"""Specification of one interface, before addresses are allocated."""

import msgspec

from contrail_config.objects import DefaultGateway, VirtualNetwork


class InterfaceSpec(msgspec.Struct, frozen=True):
    """One interface as the pod requests it; its index is its position in the list.

    `chosen_by_pod`: the pod itself chose the network, not its namespace or the configuration. `requested_addresses` has
    at most one address per family. `default_route` is None without a request, else the requested gateways (empty: no
    default route at all), which become the gateways of the interface. The other fields are those of
    `VirtualMachineInterface`.
    """

    network: VirtualNetwork
    chosen_by_pod: bool = True
    requested_addresses: tuple[str, ...] = ()
    mac: str | None = None
    default_route: tuple[str, ...] | None = None
    nad: str | None = None
    config_name: str | None = None
    interface: str | None = None
    attachment: str | None = None
    default_gw: DefaultGateway | None = None
