"""From served interfaces and their names to plans, the one description of what shall be in the kernel."""

from collections.abc import Sequence

from cni_contrail.interfaces.defaults import default_routes
from cni_contrail.interfaces.names import alias, host_name
from cni_contrail.interfaces.served import ServedAddress, ServedInterface
from cni_contrail.link.addresses import covers, packed
from cni_contrail.link.plan import Address, InterfacePlan
from cni_contrail.pod import Pod

_SUBNET_METRIC = {4: 0, 6: 256}  # of the kernel's routes to the subnets of addresses


def plan_interface(
    interface: ServedInterface,
    name: str,
    interfaces: Sequence[ServedInterface],
    *,
    container_id: str,
    pod: Pod,
    mtu: int,
    primary_is_ours: bool,
) -> InterfacePlan:
    """Plans one of the pod's `interfaces`, called `name` in the sandbox; `mtu` (bytes) is for agents that tell none."""
    return InterfacePlan(
        name=name,
        host_name=host_name(container_id, name),
        alias=alias(container_id, pod, interface.uuid),
        mac=interface.mac,
        mtu=interface.mtu or mtu,
        addresses=tuple(_address(each, interface, interfaces) for each in interface.addresses or ()),
        routes=interface.routes,
        defaults=default_routes(interface, interfaces, primary_is_ours=primary_is_ours),
    )


def _address(served: ServedAddress, interface: ServedInterface, interfaces: Sequence[ServedInterface]) -> Address:
    """The address; if an interface of lower index is in the same subnet, the route there is preferred."""
    before = [each for each in interfaces if each.position < interface.position]
    if not any(_same_subnet(served.address, other.address) for each in before for other in each.addresses or ()):
        return served.address
    return served.address._replace(metric=_SUBNET_METRIC[served.family] + interface.position)


def _same_subnet(address: Address, other: Address) -> bool:
    return address.prefix_length == other.prefix_length and covers(other, packed(address.address)[1])
