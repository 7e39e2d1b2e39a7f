"""From served interfaces and their names to plans, the one description of what shall be in the kernel."""

from collections.abc import Sequence

from cni_contrail.interfaces.defaults import default_routes
from cni_contrail.interfaces.names import alias, host_name
from cni_contrail.interfaces.served import ServedInterface
from cni_contrail.link.plan import InterfacePlan
from cni_contrail.pod import Pod


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
        addresses=tuple(each.address for each in interface.addresses or ()),
        routes=interface.routes,
        defaults=default_routes(interface, interfaces, primary_is_ours=primary_is_ours),
    )
