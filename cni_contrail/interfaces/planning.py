"""From served interfaces and their names to plans, the one description of what shall be in the kernel."""

from collections.abc import Mapping, Sequence

from cni_contrail.interfaces.default_routes import default_routes
from cni_contrail.interfaces.names import alias, host_name
from cni_contrail.interfaces.served import ServedAddress, ServedInterface
from cni_contrail.link.addresses import Subnet, subnet_of
from cni_contrail.link.plan import Address, InterfacePlan
from cni_contrail.pod import Pod

_SUBNET_METRIC = {4: 0, 6: 256}  # of the kernel's routes to the subnets of addresses


def plan_interfaces(
    chosen: Sequence[ServedInterface],
    names: Sequence[str],
    interfaces: Sequence[ServedInterface],
    *,
    container_id: str,
    pod: Pod,
    mtu: int,
    primary_is_ours: bool,
) -> list[InterfacePlan]:
    """Plans those that are `chosen` of the pod's `interfaces`, called `names` in the sandbox.

    `mtu` (bytes) is for agents that tell none.
    """
    defaults = default_routes(interfaces, primary_is_ours=primary_is_ours)
    first = _first_in_subnets(interfaces)
    return [
        InterfacePlan(
            name=name,
            host_name=host_name(container_id, name),
            alias=alias(container_id, pod, interface.uuid),
            mac=interface.mac,
            mtu=interface.mtu or mtu,
            addresses=tuple([_address(each, interface.position, first) for each in interface.addresses or ()]),
            routes=interface.routes,
            defaults=defaults.get(interface.uuid, ()),
        )
        for interface, name in zip(chosen, names, strict=True)
    ]


def _first_in_subnets(interfaces: Sequence[ServedInterface]) -> Mapping[Subnet, int]:
    """The lowest position of an interface in each of the pod's subnets."""
    first: dict[Subnet, int] = {}
    for interface in interfaces:
        for served in interface.addresses or ():
            first.setdefault(subnet_of(served.address), interface.position)
    return first


def _address(served: ServedAddress, position: int, first: Mapping[Subnet, int]) -> Address:
    """The address; if an interface of lower index is in the same subnet, the route there is preferred."""
    if first[subnet_of(served.address)] == position:
        return served.address
    return served.address._replace(metric=_SUBNET_METRIC[served.family] + position)
