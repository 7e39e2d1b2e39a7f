"""Networks whose IPAM others made, which is used and stays as it is, and networks of other clusters."""

import pytest

from contrail_config.errors import ConflictError
from contrail_config.objects import network_uuid
from contrail_config.vnc.client import VncAccess, connect
from contrail_config.vnc.store import VncStore
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Caller, Made
from tests.support.fake_clock import FakeClock
from tests.support.virtual_networks import allocate_one, make_network, new_owner

NETWORK = make_network()
IPAM = "left-ipam"


@pytest.fixture
async def ipam(caller: Caller) -> Made:
    """An IPAM of the name that the network's would have."""
    project = await caller.create("project", fq_name=list(NETWORK.fq_name[:2]), parent_type="domain")
    return await caller.create("network-ipam", fq_name=[*project.fq_name, IPAM], parent_type="project")


async def test_an_ipam_of_others_stays_when_its_network_is_deleted(
    vnc_store: VncStore, ipam: Made, double: ContrailApi
) -> None:
    await vnc_store.put_network(NETWORK)
    await vnc_store.delete_network(NETWORK.uuid)
    assert NETWORK.uuid not in double.database.objects
    assert ipam.uuid in double.database.objects


async def test_an_ipam_of_others_stays_when_its_network_goes_with_the_last_hold(
    vnc_store: VncStore, ipam: Made, double: ContrailApi, clock: FakeClock
) -> None:
    network, owner = await vnc_store.put_network(NETWORK), new_owner()
    await allocate_one(vnc_store, network, owner)
    await vnc_store.release([owner], hold=5)
    await vnc_store.delete_network(network.uuid)
    clock.advance(6)
    await vnc_store._expire()
    assert network.uuid not in double.database.objects
    assert ipam.uuid in double.database.objects


async def test_an_ipam_that_was_made_for_the_network_goes_with_it(vnc_store: VncStore, double: ContrailApi) -> None:
    await vnc_store.put_network(NETWORK)
    assert IPAM in ipam_names(double)
    await vnc_store.delete_network(NETWORK.uuid)
    assert IPAM not in ipam_names(double)


def ipam_names(double: ContrailApi) -> set[str]:
    return {stored.fq_name[-1] for stored in double.database.of_kind(KINDS["network-ipam"]).values()}


async def test_a_network_of_another_cluster_is_refused_and_stays_as_it_is(
    vnc_store: VncStore, double: ContrailApi
) -> None:
    """The namespaces `prod-web` of `k8s` and `web` of `k8s-prod` have one project, and one name for a network."""
    name = ("default-domain", "k8s-prod-web", "k8s-prod-web-pod-network")
    network = make_network("any", fq_name=name, uuid=network_uuid(name))
    await vnc_store.put_network(network)
    before = double.database.objects[network.uuid].properties
    async with connect(VncAccess((double.url,))) as client:
        other = await VncStore.open(client, cluster="k8s-prod")
        with pytest.raises(ConflictError, match="belongs to cluster k8s: give one of both namespaces another name"):
            await other.put_network(make_network("any", "10.9.0.0/24", fq_name=name, uuid=network_uuid(name)))
        await other.close()
    assert double.database.objects[network.uuid].properties == before
    assert [each.uuid for each in await vnc_store.networks()] == [network.uuid]


async def test_a_deleted_network_of_another_cluster_is_refused_until_it_is_gone(
    vnc_store: VncStore, double: ContrailApi, clock: FakeClock
) -> None:
    network, owner = await vnc_store.put_network(NETWORK), new_owner()
    await allocate_one(vnc_store, network, owner)
    await vnc_store.release([owner], hold=5)
    await vnc_store.delete_network(network.uuid)
    async with connect(VncAccess((double.url,))) as client:
        other = await VncStore.open(client, cluster="k8s-prod")
        with pytest.raises(ConflictError, match="belongs to cluster k8s"):
            await other.put_network(NETWORK)
        clock.advance(6)
        await vnc_store._expire()
        assert (await other.put_network(NETWORK)).uuid == NETWORK.uuid
        await other.close()
