"""Virtual networks that somebody deletes are put back with their uuid and vni, if anything needs them."""

from collections import defaultdict

import pytest

from contrail_config.objects import VirtualNetwork
from tests.manager.kubernetes.conftest import Managed
from tests.support.cluster_objects import ClusterObjects
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import eventually
from tests.support.stored_objects import (
    VIRTUAL_NETWORK_KIND,
    allocated_addresses,
    stored_networks,
    stored_virtual_machines,
)


def network_of(server: FakeApiServer, nad: str | None) -> VirtualNetwork | None:
    """The network of the NAD, or the pod network, once it is confirmed."""
    key = None if nad is None else f"blue/{nad}"
    items = server.storage.objects(VIRTUAL_NETWORK_KIND).items()
    confirmed = {name for (_, name), item in items if not item["metadata"].get("annotations")}
    found = (network for uuid, network in stored_networks(server).items() if uuid in confirmed)
    return next((network for network in found if network.nad == key), None)


async def existing(server: FakeApiServer, nad: str | None) -> VirtualNetwork:
    await eventually(lambda: network_of(server, nad) is not None)
    network = network_of(server, nad)
    assert network is not None
    return network


def delete(server: FakeApiServer, network: VirtualNetwork) -> None:
    server.remove(VIRTUAL_NETWORK_KIND, network.uuid, namespace="")


async def served(objects: ClusterObjects, server: FakeApiServer, name: str, networks: str = "") -> str:
    uid = objects.add_pod(name, networks=networks)
    await eventually(lambda: uid in stored_virtual_machines(server))
    return uid


@pytest.mark.parametrize("nad", [None, "net-a"])
async def test_a_deleted_network_is_put_back_unchanged(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, nad: str | None
) -> None:
    async with managed():
        objects.add_nad("net-a", cidr="10.1.0.0/24")
        before = await existing(server, nad)
        uid = await served(objects, server, "before", "net-a")
        for _ in range(2):
            delete(server, before)
            await eventually(lambda: network_of(server, nad) == before)
        await served(objects, server, "after", "net-a")
        assert uid in stored_virtual_machines(server)
        assert len(allocated_addresses(server)) == 4


async def test_a_network_without_interfaces_is_put_back_too(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        objects.add_nad("net-a")
        before = await existing(server, "net-a")
        delete(server, before)
        await eventually(lambda: network_of(server, "net-a") == before)


async def test_deletions_during_an_interrupted_watch_are_noticed(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        objects.add_nad("net-a")
        before = await existing(server, "net-a")
        watches = [watch for watch in server.watches if watch.is_of(VIRTUAL_NETWORK_KIND)]
        await eventually(
            lambda: not any(server.storage.since(watch.last_revision, VIRTUAL_NETWORK_KIND) for watch in watches)
        )
        server.faults.silent = True
        delete(server, before)
        server.faults.silent = False
        server.forget_history()
        await eventually(lambda: network_of(server, "net-a") == before)


async def test_a_retired_network_with_interfaces_is_put_back_until_they_are_gone(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        objects.add_nad("net-a")
        await served(objects, server, "web-0", "net-a")
        before = await existing(server, "net-a")
        objects.remove_nad("net-a")
        await eventually(lambda: stored_networks(server)[before.uuid].retired)
        delete(server, before)
        await eventually(lambda: before.uuid in stored_networks(server))
        after = stored_networks(server)[before.uuid]
        assert (after.vni, after.retired) == (before.vni, True)
        objects.remove_pod("web-0")
        await eventually(lambda: before.uuid not in stored_networks(server))


def pod_numbers(server: FakeApiServer) -> dict[str, set[int]]:
    """The numbers in virtual machines, by network uuid."""
    found = defaultdict[str, set[int]](set)
    for machine in stored_virtual_machines(server).values():
        for interface in machine.interfaces:
            found[interface.network_uuid].add(interface.vni)
    return dict(found)


async def test_networks_that_are_deleted_while_no_manager_runs_get_the_numbers_of_their_pods(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        for count, name in enumerate(("zz", "mm", "aa")):
            objects.add_nad(name, cidr=f"10.{count + 1}.0.0/24")
            await served(objects, server, f"on-{name}", name)
    before = stored_networks(server)
    for uuid in before:
        server.remove(VIRTUAL_NETWORK_KIND, uuid, namespace="")
    objects.add_nad("ab", cidr="10.9.0.0/24")  # by name it is created before the others
    async with managed():
        for name in ("ab", "zz", "mm", "aa"):
            await existing(server, name)
        after = stored_networks(server)
        assert {uuid: {after[uuid].vni} for uuid in before} == pod_numbers(server)
        assert len({network.vni for network in after.values()}) == len(after)


async def test_the_number_of_a_deleted_network_is_not_given_to_one_that_is_created_before_it_is_put_back(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        objects.add_nad("zz", cidr="10.1.0.0/24")
        before = await existing(server, "zz")
        await served(objects, server, "on-zz", "zz")
        for count in range(20):
            objects.add_nad(f"a-{count}", cidr=f"10.{count + 20}.0.0/24")
        delete(server, before)
        for count in range(20, 40):
            objects.add_nad(f"a-{count}", cidr=f"10.{count + 20}.0.0/24")
        for count in range(40):
            await existing(server, f"a-{count}")
        assert await existing(server, "zz") == before


async def test_a_network_whose_number_a_stranger_has_taken_gets_another_one(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with managed():
        objects.add_nad("net-a")
        before = await existing(server, "net-a")
        uid = await served(objects, server, "old", "net-a")
        fq_name = ["default-domain", "others", "thief"]
        spec = {"fqName": fq_name, "uuid": "7b1d1f5e-0000-4000-8000-000000000001", "subnets": [], "vni": before.vni}
        server.faults.silent = True
        delete(server, before)
        server.put(VIRTUAL_NETWORK_KIND, str(spec["uuid"]), namespace="", spec=spec)
        server.faults.silent = False
        server.storage.notify()
        await eventually(lambda: network_of(server, "net-a") is not None)
        await eventually(lambda: "restored with vni" in caplog.text)
        after = await existing(server, "net-a")
        assert after.uuid == before.uuid
        assert after.vni != before.vni
        new = await served(objects, server, "new", "net-a")
        machines = stored_virtual_machines(server)  # nodes refuse the older one, since numbers disagree
        assert [machines[each].interfaces[1].vni for each in (uid, new)] == [before.vni, after.vni]


async def test_a_network_of_a_deleted_nad_stays_deleted(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    async with managed():
        objects.add_nad("net-a")
        await existing(server, "net-a")
        objects.remove_nad("net-a")
        await eventually(lambda: network_of(server, "net-a") is None)
        objects.add_nad("net-b", cidr="10.2.0.0/24")
        await served(objects, server, "web-0", "net-b")
        assert network_of(server, "net-a") is None


async def test_the_network_of_an_isolated_namespace_is_put_back(
    managed: Managed, objects: ClusterObjects, server: FakeApiServer
) -> None:
    def own() -> VirtualNetwork | None:
        return next((network for network in stored_networks(server).values() if network.namespace == "red"), None)

    objects.add_namespace("red", **{"opencontrail.org/isolation": "true"})
    async with managed():
        uid = objects.add_pod("web-0", namespace="red")
        await eventually(lambda: uid in stored_virtual_machines(server))
        before = own()
        assert before is not None
        delete(server, before)
        await eventually(lambda: own() == before)
