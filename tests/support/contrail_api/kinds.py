"""Resource types of the API server: parents, references and properties."""

from typing import NamedTuple

COMMON = frozenset({"annotations", "display_name", "id_perms", "perms2"})
"""Properties of every type."""

MAPS = frozenset({"annotations"})
"""Properties that are maps by `key`."""


class Kind(NamedTuple):
    """`name` has hyphens, as in paths; `underscored` is used by watches. The first of `parents` is the default."""

    name: str
    parents: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    properties: frozenset[str] = frozenset()

    @property
    def collection(self) -> str:
        return f"{self.name}s"

    @property
    def underscored(self) -> str:
        return self.name.replace("-", "_")


_ALL = (
    Kind("domain"),
    Kind("global-system-config"),
    Kind("project", ("domain",), ("application-policy-set",), frozenset({"quota"})),
    Kind("application-policy-set", ("project",)),
    Kind("security-group", ("project",), (), frozenset({"security_group_entries"})),
    Kind(
        "network-ipam",
        ("project",),
        (),
        frozenset({"network_ipam_mgmt", "ipam_subnets", "ipam_subnet_method", "ipam_subnetting"}),
    ),
    Kind(
        "virtual-network",
        ("project",),
        ("network-ipam", "network-policy"),
        frozenset(
            {
                "address_allocation_mode",
                "fabric_snat",
                "is_shared",
                "mtu",
                "port_security_enabled",
                "router_external",
                "virtual_network_network_id",
                "virtual_network_properties",
            }
        ),
    ),
    Kind("routing-instance", ("virtual-network",), (), frozenset({"routing_instance_is_default"})),
    Kind("virtual-machine", (), (), frozenset({"server_type"})),
    Kind(
        "virtual-machine-interface",
        ("project", "virtual-machine", "virtual-router"),
        ("virtual-network", "virtual-machine", "security-group", "routing-instance", "virtual-machine-interface"),
        frozenset(
            {
                "port_security_enabled",
                "virtual_machine_interface_mac_addresses",
                "virtual_machine_interface_properties",
            }
        ),
    ),
    Kind(
        "instance-ip",
        (),
        ("virtual-network", "virtual-machine-interface"),
        frozenset({"instance_ip_address", "instance_ip_family", "instance_ip_secondary", "subnet_uuid"}),
    ),
    Kind("floating-ip", ("instance-ip",), ("virtual-machine-interface",), frozenset({"floating_ip_address"})),
    Kind(
        "virtual-router",
        ("global-system-config",),
        ("virtual-machine",),
        frozenset({"virtual_router_ip_address", "virtual_router_type", "virtual_router_dpdk_enabled"}),
    ),
)

KINDS = {kind.name: kind for kind in _ALL}
COLLECTIONS = {kind.collection: kind for kind in _ALL}
UNDERSCORED = {kind.underscored: kind for kind in _ALL}


def find_kind(name: str) -> Kind | None:
    """Returns the type of a name with hyphens or underscores."""
    return KINDS.get(name.replace("_", "-"))


def reference_key(kind: str) -> str:
    """Returns the field of references to a type, such as `virtual_network_refs`."""
    return f"{kind.replace('-', '_')}_refs"


def back_reference_key(kind: str) -> str:
    """Returns the field of referrers of a type, such as `instance_ip_back_refs`."""
    return f"{kind.replace('-', '_')}_back_refs"


def children_key(kind: str) -> str:
    """Returns the field of children of a type, such as `routing_instances`."""
    return f"{kind.replace('-', '_')}s"
