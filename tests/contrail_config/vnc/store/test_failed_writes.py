"""VncStore: a pod whose write failed before it was committed, and what is asked for it then."""

import uuid

import pytest

from contrail_config.errors import ConflictError, StoreError
from contrail_config.objects import VirtualNetwork, interface_uuid
from contrail_config.vnc.mapping import annotations
from contrail_config.vnc.store import VncStore
from tests.contrail_config.vnc.store.conftest import OpenVnc
from tests.contrail_config.vnc.store.test_vnc_store_kills import PODS, UID, counted, linked
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Made
from tests.support.virtual_networks import make_network, start_pod

COMMIT = "POST /prop-collection-update"
OTHER = str(uuid.uuid4())


@pytest.fixture
async def network(vnc_store: VncStore) -> VirtualNetwork:
    return await vnc_store.put_network(make_network())


@pytest.fixture
async def other(vnc_store: VncStore) -> VirtualNetwork:
    return await vnc_store.put_network(make_network("right", "10.2.0.0/24"))


async def fail_to_start(store: VncStore, double: ContrailApi, *networks: VirtualNetwork) -> list[str]:
    """Has the write of a pod fail at the commit, and returns the uuids of its interfaces."""
    double.faults.reject(500, "Internal Server Error", matches=COMMIT)
    with pytest.raises(StoreError, match="Internal Server Error"):
        await start_pod(store, networks, uid=UID)
    return [interface_uuid(UID, index) for index in range(len(networks))]


def interfaces(double: ContrailApi) -> dict[str, tuple[str, str | None]]:
    """The server's interfaces by index, each with its number of interfaces and its network."""
    found = {}
    for stored in double.database.of_kind(KINDS["virtual-machine-interface"]).values():
        index, _, count = annotations.from_object(stored.properties)["index"].partition("/")
        found[index] = (count, stored.only("virtual-network"))
    return found


async def test_a_pod_that_wants_another_network_by_then_is_in_no_other(
    vnc_store: VncStore, double: ContrailApi, router: Made, network: VirtualNetwork, other: VirtualNetwork
) -> None:
    owners = await fail_to_start(vnc_store, double, network, network)
    await vnc_store.release(owners[1:], hold=0)
    machine = await start_pod(vnc_store, [network, other], uid=UID)
    assert interfaces(double) == {"0": ("2", network.uuid), "1": ("2", other.uuid)}
    assert await vnc_store.virtual_machines() == [machine]
    assert linked(double, router) == [UID]


@pytest.mark.parametrize("count", [1, 3])
async def test_a_pod_that_wants_another_number_of_interfaces_by_then_has_that(
    vnc_store: VncStore, double: ContrailApi, router: Made, network: VirtualNetwork, count: int
) -> None:
    owners = await fail_to_start(vnc_store, double, network, network)
    await vnc_store.release(owners[count:], hold=0)
    await start_pod(vnc_store, [network] * count, uid=UID)
    assert interfaces(double) == {str(index): (str(count), network.uuid) for index in range(count)}
    assert counted(double) == {"virtual-machine": 1, "virtual-machine-interface": count, "instance-ip": count}
    assert linked(double, router) == [UID]


async def test_a_pod_that_wants_the_same_is_continued(
    vnc_store: VncStore, double: ContrailApi, router: Made, network: VirtualNetwork
) -> None:
    await fail_to_start(vnc_store, double, network, network)
    double.requests.clear()
    await start_pod(vnc_store, [network] * 2, uid=UID)
    assert not [request for request in double.requests if request.startswith("DELETE")]


async def test_a_pod_of_the_same_name_is_written_by_the_second_attempt_of_another_manager(
    open_vnc: OpenVnc, vnc_store: VncStore, double: ContrailApi, router: Made, network: VirtualNetwork
) -> None:
    next_manager = await open_vnc()
    await fail_to_start(vnc_store, double, network)
    with pytest.raises(ConflictError):
        await start_pod(next_manager, [network], uid=OTHER)
    machine = await start_pod(next_manager, [network], uid=OTHER)
    assert await next_manager.virtual_machines() == [machine]
    assert linked(double, router) == [OTHER]


async def test_a_pod_that_is_given_up_leaves_nothing(
    vnc_store: VncStore, double: ContrailApi, router: Made, network: VirtualNetwork
) -> None:
    owners = await fail_to_start(vnc_store, double, network, network)
    await vnc_store.release(owners, hold=0)
    assert counted(double) == dict.fromkeys(PODS, 0)
    assert linked(double, router) == []
    await vnc_store.delete_network(network.uuid)
