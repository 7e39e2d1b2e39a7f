"""Result of parsing a NetworkAttachmentDefinition."""

import msgspec

from contrail_config.objects import ForwardingMode, FqName, Route, Subnet


class NetworkDefinition(msgspec.Struct, frozen=True):
    """A NAD of the Contrail plugin: `subnets` of its own network, or `reference` to an existing one, never both.

    `config_name` is `name` in `spec.config`, else the NAD's name. `mtu` None: the default. `forwarding_mode`
    None: the manager chooses.
    """

    config_name: str
    subnets: tuple[Subnet, ...]
    reference: FqName | None
    dns: tuple[str, ...]
    mtu: int | None
    routes: tuple[Route, ...]
    ip_fabric_snat: bool
    ip_fabric_forwarding: bool
    forwarding_mode: ForwardingMode | None


class ForeignDefinition(msgspec.Struct, frozen=True):
    """A NAD of another plugin: never served by the Contrail plugin, but counted when attachments are numbered."""

    config_name: str
    plugin: str
