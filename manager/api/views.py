"""Views of the manager's records and objects, as the API shows them."""

from typing import Any

from contrail_config.default_routes import default_routes
from contrail_config.objects import VirtualMachine, VirtualNetwork
from manager.api.types import NetworkView, PodNetworks, PodView
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
