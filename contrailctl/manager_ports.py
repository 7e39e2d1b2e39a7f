"""States of ports from the answer of a manager, which is that of the agent of the pod's node."""

from collections.abc import Sequence

from cni_contrail.datapath.namespaces import name_of
from contrail_config.objects import VirtualMachineInterface
from contrailctl.datapath import Drops, PortCondition, PortCounters, PortState
from manager.api.types import PortView


def port_states(views: Sequence[PortView], interfaces: Sequence[VirtualMachineInterface]) -> dict[str, PortState]:
    """Returns the states of ports by interface uuid."""
    vnis = {interface.uuid: interface.vni for interface in interfaces}
    return {view.interface: _state(view, vnis.get(view.interface, 0)) for view in views}


def _state(view: PortView, vni: int) -> PortState:
    is_known = view.condition in set(PortCondition)
    drops, counters = view.drops, view.counters
    return PortState(
        condition=PortCondition(view.condition) if is_known else PortCondition.UNKNOWN,
        reason=view.reason or ("" if is_known else view.condition),
        namespace=view.link_namespace or (name_of(vni) if view.link is None and view.index and vni else None),
        drops=None
        if drops is None
        else Drops(drops.network_spoofing, drops.network_broadcast, drops.network_tunnel or 0, drops.network_mtu or 0),
        spoofing=None if drops is None else drops.spoofing,
        counters=None
        if counters is None
        else PortCounters(
            counters.sent_packets, counters.sent_bytes, counters.received_packets, counters.received_bytes
        ),
        counted_at=view.counted_at,
    )
