"""Views of the manager's records and objects, as the API shows them."""

from collections.abc import Sequence
from typing import Any

import msgspec

from contrail_config.default_routes import default_routes
from contrail_config.objects import VirtualMachine, VirtualNetwork
from contrail_config.port_readings import PortReading
from manager.api.types import NetworkView, PodNetworks, PodView, PortView
from manager.controller.pod_record import PodRecord
from manager.mapping.network_addressing import capacity, families

MAX_CAPACITY = 1 << 53
"""What every JSON reader can represent."""


def network_view(network: VirtualNetwork, interfaces: int) -> NetworkView:
    """Returns a network with this number of interfaces."""
    return NetworkView(network, interfaces, _capacity(network, 4), _capacity(network, 6))


def pod_networks(record: PodRecord, networks: tuple[str, ...]) -> PodNetworks:
    """Returns the pod of the record, which must have one, with these networks."""
    return PodNetworks(**_progress(record), networks=networks)


def pod_view(record: PodRecord, machine: VirtualMachine | None, names: tuple[str, ...]) -> PodView:
    """Returns the pod of the record, which must have one, with its virtual machine and the names of its interfaces."""
    assert record.pod is not None
    return PodView(
        **_progress(record),
        uid=record.pod.uid,
        machine=machine,
        names=names,
        default_routes=tuple(default_routes(machine.interfaces)) if machine else (),
    )


def port_views(
    virtual_machine: VirtualMachine, names: Sequence[str], readings: Sequence[PortReading], counted_at: str | None
) -> list[PortView]:
    """Returns the ports of a virtual machine, whose interfaces have these names, in their order.

    The state of a port without a reading is not known.
    """
    by_interface = {reading.interface: reading for reading in readings}
    views = []
    for index, (name, interface) in enumerate(zip(names, virtual_machine.interfaces, strict=True)):
        unknown = PortReading(interface.uuid, "Unknown", "its node did not report it")
        reading: dict[str, Any] = msgspec.structs.asdict(by_interface.get(interface.uuid, unknown))
        views.append(
            PortView(
                virtual_machine.namespace, virtual_machine.pod, index=index, name=name, **reading, counted_at=counted_at
            )
        )
    return views


def networks_of(record: PodRecord) -> tuple[str, ...]:
    """Returns the networks that are assigned to the pod of the record; none while only a predecessor has some."""
    assignment, pod = record.assignment, record.pod
    return assignment.networks if assignment is not None and pod is not None and assignment.uuid == pod.uid else ()


def _progress(record: PodRecord) -> dict[str, Any]:
    """Returns what both views of a pod have."""
    assert record.pod is not None
    return {
        "namespace": record.pod.namespace,
        "name": record.pod.name,
        "node": record.pod.node,
        "state": record.outcome.state,
        "reason": record.outcome.reason,
        "message": record.outcome.message or None,
    }


def _capacity(network: VirtualNetwork, family: int) -> int:
    if family not in families(network):
        return 0
    return min(MAX_CAPACITY, capacity(network, family=family, limit=MAX_CAPACITY))
