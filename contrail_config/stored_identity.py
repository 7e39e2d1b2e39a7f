"""Identity of a network that others made, such as Contrail's kube-manager: what it keeps as one of ours."""

import msgspec

from contrail_config.objects import Subnet, VirtualNetwork


def with_stored_identity(wanted: VirtualNetwork, stored: VirtualNetwork) -> VirtualNetwork:
    """Returns the wanted network with the uuid of the stored one of its name, and its gateways if the CIDRs are equal.

    No effect on a network that has this uuid.
    """
    if stored.uuid == wanted.uuid:
        return wanted
    subnets = _with_gateways(wanted.subnets, stored.subnets) if has_equal_cidrs(wanted, stored) else wanted.subnets
    return msgspec.structs.replace(wanted, uuid=stored.uuid, subnets=subnets)


def has_equal_cidrs(one: VirtualNetwork, other: VirtualNetwork) -> bool:
    """Whether two networks have the same CIDRs, in any order."""
    return {subnet.cidr for subnet in one.subnets} == {subnet.cidr for subnet in other.subnets}


def has_equal_subnets(one: VirtualNetwork, other: VirtualNetwork) -> bool:
    """Whether two networks have the same CIDRs and gateways, in any order; excluded addresses may differ."""
    return {(subnet.cidr, subnet.gateway) for subnet in one.subnets} == {
        (subnet.cidr, subnet.gateway) for subnet in other.subnets
    }


def _with_gateways(wanted: tuple[Subnet, ...], stored: tuple[Subnet, ...]) -> tuple[Subnet, ...]:
    excluded = {subnet.cidr: subnet.excluded for subnet in wanted}
    return tuple(Subnet(subnet.cidr, subnet.gateway, excluded[subnet.cidr]) for subnet in stored)
