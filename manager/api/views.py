"""Views of the manager's records and objects, as the API shows them."""

from contrail_config.objects import VirtualNetwork
from manager.api.types import NetworkView, PodNetworks
from manager.controller.pod_record import PodRecord
from manager.mapping.network_addressing import capacity, families

MAX_CAPACITY = 1 << 53
"""What every JSON reader can represent."""


def network_view(network: VirtualNetwork, interfaces: int) -> NetworkView:
    """Returns a network with this number of interfaces."""
    return NetworkView(network, interfaces, _capacity(network, 4), _capacity(network, 6))


def pod_networks(record: PodRecord, networks: tuple[str, ...]) -> PodNetworks:
    """Returns the pod of the record, which must have one, with these networks."""
    assert record.pod is not None
    return PodNetworks(
        namespace=record.pod.namespace,
        name=record.pod.name,
        node=record.pod.node,
        state=record.outcome.state,
        reason=record.outcome.reason,
        message=record.outcome.message or None,
        networks=networks,
    )


def networks_of(record: PodRecord) -> tuple[str, ...]:
    """Returns the networks that are assigned to the pod of the record; none while only a predecessor has some."""
    assignment, pod = record.assignment, record.pod
    return assignment.networks if assignment is not None and pod is not None and assignment.uuid == pod.uid else ()


def _capacity(network: VirtualNetwork, family: int) -> int:
    if family not in families(network):
        return 0
    return min(MAX_CAPACITY, capacity(network, family=family, limit=MAX_CAPACITY))
