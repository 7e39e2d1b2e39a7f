"""Plans the kernel state of interfaces from the agent's list and their names in the sandbox."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from cni_contrail.addresses import FULL_LENGTH, family_of, network_of
from cni_contrail.interfaces.names import alias, host_name, vlan_link_name
from cni_contrail.interfaces.served import ServedAddress, ServedInterface
from cni_contrail.link.addresses import SubnetKey, subnet_of
from cni_contrail.link.plan import Address, DefaultRoute, InterfacePlan, Route, SourceRouting
from cni_contrail.pod import PodIdentity

_FIRST_TABLE = 1000  # of routing tables for source addresses; `sbr` takes the first free one from 100
_NEVER_PREFERRED = 1 << 24  # metric above that of every route which the plugin adds
_SUBNET_METRIC = {4: 0, 6: 256}  # of the routes that the kernel adds for the subnets of addresses


def plan_interfaces(
    chosen: Sequence[ServedInterface],
    names: Sequence[str],
    interfaces: Sequence[ServedInterface],
    *,
    container_id: str,
    pod: PodIdentity,
    mtu: int,
    primary_is_ours: bool,
    parent: str = "",
) -> list[InterfacePlan]:
    """Plans the `chosen` ones of the pod's `interfaces`, called `names` in the sandbox.

    `mtu` (bytes) applies to interfaces for which the agent states none. With `parent` (nested mode) they are macvlans
    over the VLANs of this link; raises `PluginError` with code 100 if the agent states no VLAN.
    """
    defaults = assign_default_routes(interfaces, primary_is_ours=primary_is_ours)
    positions = _positions_in_subnets(interfaces)
    first = {subnet: min(owners) for subnet, owners in positions.items()}
    overlapping = _overlapping_subnets(positions)
    plans = [
        InterfacePlan(
            name=name,
            host_name=host_name(container_id, name),
            alias=alias(container_id, pod, interface.uuid),
            mac=interface.mac,
            mtu=interface.mtu or mtu,
            addresses=tuple([_address(each, interface.position, first) for each in interface.addresses or ()]),
            routes=interface.routes,
            defaults=defaults.get(interface.uuid, ()),
            source_routing=_source_routing(interface, overlapping) if overlapping else (),
            namespace=interface.namespace,
            routed=interface.routed,
            network=interface.isolated_network,
        )
        for interface, name in zip(chosen, names, strict=True)
    ]
    plans = [_routed(plan) if plan.routed else plan for plan in plans]
    return _nested(plans, chosen, parent) if parent else plans


def _routed(plan: InterfacePlan) -> InterfacePlan:
    """Returns the plan of an interface of a routed network: the pod sends everything to a gateway.

    That includes what is for its own subnet: there is no link on which all others could answer. The kernel's own route
    to the subnet gets a worse metric, and stays.
    """
    return plan._replace(
        addresses=tuple(each._replace(metric=_NEVER_PREFERRED) for each in plan.addresses),
        routes=(*_gateway_routes(plan), *plan.routes),
    )


def _gateway_routes(plan: InterfacePlan) -> Iterator[Route]:
    for gateway in plan.routed:
        family = family_of(gateway)
        yield Route(f"{gateway}/{FULL_LENGTH[family]}", None)
        for address, length, _ in plan.addresses:
            if family_of(address) == family and length < FULL_LENGTH[family]:
                yield Route(network_of(address, length), gateway)


def _nested(plans: Sequence[InterfacePlan], chosen: Sequence[ServedInterface], parent: str) -> list[InterfacePlan]:
    vlans = [interface.checked_vlan_id() for interface in chosen]
    return [
        plan._replace(host_name=vlan_link_name(parent, vlan_id), parent=parent, vlan_id=vlan_id)
        for plan, vlan_id in zip(plans, vlans, strict=True)
    ]


def assign_default_routes(
    interfaces: Sequence[ServedInterface], *, primary_is_ours: bool
) -> Mapping[str, tuple[DefaultRoute, ...]]:
    """Applies the default-gateway rule and returns the pod's default routes by the uuid of their interface.

    Per address family, the default route belongs to the first interface whose annotation `default-gw` covers the
    family; if there is none, and index 0 does not say `none`, to the lowest index with an address and a gateway in the
    family. An interface that requests a family in which it has no gateway is ignored. While the Contrail vrouter agent
    has not reported the addresses of an interface, it counts as having a gateway.

    `interfaces` are all of the pod's in index order. `primary_is_ours`: this plugin attached index 0 of this container.
    Otherwise another plugin may own the default route, and only requested ones are assigned.
    """
    routes: dict[str, tuple[DefaultRoute, ...]] = {}
    for family in (4, 6):
        eligible = [each for each in interfaces if each.addresses is None or each.gateway(family)]
        requesting = [each for each in eligible if each.requests_default(family)]
        owner = requesting[0] if requesting else _fallback(eligible, interfaces) if primary_is_ours else None
        if owner is not None and (gateway := owner.gateway(family)) is not None:
            routes[owner.uuid] = (*routes.get(owner.uuid, ()), DefaultRoute(gateway, asked=bool(requesting)))
    return routes


def _fallback(eligible: Sequence[ServedInterface], interfaces: Sequence[ServedInterface]) -> ServedInterface | None:
    return eligible[0] if eligible and not interfaces[0].disables_default else None


def _positions_in_subnets(interfaces: Sequence[ServedInterface]) -> Mapping[SubnetKey, AbstractSet[int]]:
    """Returns the positions of the interfaces in each of the pod's subnets.

    While the Contrail vrouter agent has not reported the addresses of an interface, it counts as being in all subnets
    of its network that others are in: source routing for a subnet that is not shared does no harm.
    """
    unknown: dict[str, set[int]] = {}
    for interface in interfaces:
        if interface.addresses is None:
            unknown.setdefault(interface.network, set()).add(interface.position)
    positions: dict[SubnetKey, set[int]] = {}
    for interface in interfaces:
        for served in interface.addresses or ():
            owners = positions.setdefault(subnet_of(served.address), set())
            owners.add(interface.position)
            owners |= unknown.get(interface.network, set())
    return positions


def _overlapping_subnets(positions: Mapping[SubnetKey, AbstractSet[int]]) -> AbstractSet[SubnetKey]:
    """Returns the subnets that are, or overlap, a subnet of another interface of the pod."""
    overlapping = {subnet for subnet, owners in positions.items() if len(owners) > 1}
    lengths = {length for _, length, _ in positions}
    for subnet, owners in positions.items():
        family, length, prefix = subnet
        for shorter in [each for each in lengths if each < length]:
            wider = (family, shorter, prefix >> length - shorter)
            if positions.get(wider, owners) != owners:
                overlapping |= {subnet, wider}
    return overlapping


def _source_routing(interface: ServedInterface, overlapping: AbstractSet[SubnetKey]) -> tuple[SourceRouting, ...]:
    return tuple(
        SourceRouting(each.address.address, each.address.prefix_length, each.gateway, _FIRST_TABLE + interface.position)
        for each in interface.addresses or ()
        if subnet_of(each.address) in overlapping
    )


def _address(served: ServedAddress, position: int, first: Mapping[SubnetKey, int]) -> Address:
    """Returns the address; its subnet route gets a worse metric if an interface of lower index has the same subnet."""
    if first[subnet_of(served.address)] == position:
        return served.address
    return served.address._replace(metric=_SUBNET_METRIC[served.family] + position)
