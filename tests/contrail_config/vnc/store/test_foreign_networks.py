"""Networks that others made on the server: shown when they are named, used, and never written."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from contrail_config.errors import ConflictError
from contrail_config.objects import FqName, VirtualNetwork
from contrail_config.store import ChangeType, WatchStart
from contrail_config.vnc import named_networks
from contrail_config.vnc.client import VncAccess, connect
from contrail_config.vnc.store import VncStore
from tests.contrail_config.vnc.store.conftest import OpenVnc
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Caller, Made, annotations, subnet
from tests.support.fake_clock import FakeClock
from tests.support.recorded_reflector import eventually
from tests.support.upstream_kube_manager import UpstreamKubeManager
from tests.support.virtual_networks import allocate_one, make_network, start_pod

CIDR, GATEWAY = "10.5.0.0/24", "10.5.0.254"
PROJECT = ("default-domain", "office")


@pytest.fixture
async def office(caller: Caller) -> Made:
    return await caller.create("project", fq_name=list(PROJECT), parent_type="domain")


@pytest.fixture
async def foreign(caller: Caller, office: Made) -> Made:
    """A network that somebody made in a project of the site."""
    return await caller.network(subnet(CIDR, default_gateway=GATEWAY), project=office)


@pytest.fixture
async def store(double: ContrailApi, clock: FakeClock) -> AsyncIterator[VncStore]:
    """It may show networks of the project."""
    async with connect(VncAccess((double.url,)), deadline=10) as client:
        store = VncStore(client, cluster="k8s", clock=clock, projects=[PROJECT])
        await store.start()
        yield store
        await store.close()


InCluster = Callable[..., Awaitable[VncStore]]
"""Opens a store of a cluster that has namespaces: names, or one set of them."""


@pytest.fixture
def in_cluster(open_vnc: OpenVnc) -> InCluster:
    async def open_one(*names: str | set[str], **options: Any) -> VncStore:
        store = await open_vnc(**options)
        namespaces = names[0] if isinstance(names[0], set) else set(names)

        async def exists(name: str) -> bool:
            return name in namespaces

        store.use_namespaces(exists)
        return store

    return open_one


def name_of(made: Made) -> FqName:
    domain, project, name = made.fq_name
    return domain, project, name


async def found(store: VncStore, made: Made) -> VirtualNetwork:
    network = await store.find_network(name_of(made))
    assert network is not None
    return network


async def test_it_has_what_the_server_says_of_it(store: VncStore, foreign: Made, double: ContrailApi) -> None:
    network = await found(store, foreign)
    assert (network.uuid, network.fq_name, network.nad) == (foreign.uuid, name_of(foreign), None)
    assert [(each.cidr, each.gateway) for each in network.subnets] == [(CIDR, GATEWAY)]
    assert network.vni == double.database.objects[foreign.uuid].properties["virtual_network_network_id"]
    assert await store.networks() == [network]


async def test_it_is_not_shown_before_it_is_named(store: VncStore, foreign: Made) -> None:
    assert await store.networks() == []


async def test_pods_in_it_have_addresses_that_nobody_else_has(store: VncStore, foreign: Made, caller: Caller) -> None:
    others = {await caller.address_of(await caller.address(foreign)) for _ in range(3)}
    network = await found(store, foreign)
    machine = await start_pod(store, [network, network])
    own = {address.address for interface in machine.interfaces for address in interface.addresses}
    assert len(own) == 2
    assert not own & others
    linked = await caller.get("/virtual-machine-interfaces", back_ref_id=foreign.uuid)
    assert {each["uuid"] for each in linked["virtual-machine-interfaces"]} == {
        interface.uuid for interface in machine.interfaces
    }


async def test_it_is_never_written(store: VncStore, foreign: Made, double: ContrailApi) -> None:
    before = double.database.objects[foreign.uuid].properties
    network = await found(store, foreign)
    machine = await start_pod(store, [network])
    await store.repairs.repair()
    await store.delete_virtual_machine(machine.uuid, hold=0.0)
    await store.delete_network(network.uuid)
    assert double.database.objects[foreign.uuid].properties == before
    with pytest.raises(ConflictError, match=f"already exists with uuid {foreign.uuid}"):
        await store.put_network(make_network("left", fq_name=name_of(foreign)))
    assert double.database.objects[foreign.uuid].properties == before


async def test_one_of_a_project_that_is_not_listed_is_not_shown(store: VncStore, caller: Caller) -> None:
    elsewhere = await caller.network(subnet(CIDR))
    assert await store.find_network(name_of(elsewhere)) is None
    assert await store.networks() == []


async def test_one_of_another_cluster_or_of_ours_is_not_shown(store: VncStore, caller: Caller, office: Made) -> None:
    stated = ({"cluster": "other"}, {"cluster": "other", "network": "{}"}, {"cluster": "k8s", "deleted": "true"})
    for pairs in stated:
        made = await caller.network(subnet(CIDR), project=office, annotations=annotations(**pairs))
        assert await store.find_network(name_of(made)) is None, pairs


async def test_one_in_the_project_of_a_namespace_is_shown(in_cluster: InCluster, caller: Caller) -> None:
    made = await UpstreamKubeManager(caller).nad_network("net-a", CIDR, GATEWAY, namespace="blue")
    assert (await found(await in_cluster("blue"), made)).uuid == made.uuid


async def test_one_of_a_cluster_whose_name_begins_like_ours_is_not_shown(in_cluster: InCluster, caller: Caller) -> None:
    """The project of the namespace `blue` of a cluster `k8s-prod`."""
    made = await UpstreamKubeManager(caller).nad_network("net-a", CIDR, GATEWAY, namespace="prod-blue")
    assert made.fq_name[1] == "k8s-prod-blue"
    assert await (await in_cluster("blue")).find_network(name_of(made)) is None


async def test_one_in_the_project_of_a_later_namespace_is_shown_then(in_cluster: InCluster, caller: Caller) -> None:
    made = await UpstreamKubeManager(caller).nad_network("net-a", CIDR, GATEWAY, namespace="blue")
    namespaces: set[str] = set()
    store = await in_cluster(namespaces)
    assert await store.find_network(name_of(made)) is None
    await store._named.find_again()
    assert await store.networks() == []
    namespaces.add("blue")
    async with store.watch_networks(start=WatchStart.NOW) as changes, asyncio.timeout(10):
        await store._named.find_again()
        change = await anext(changes)
    assert change.object is not None
    assert (change.type, change.object.uuid) == (ChangeType.ADDED, made.uuid)


async def test_of_names_that_name_nothing_the_last_ones_are_remembered(
    store: VncStore, foreign: Made, caller: Caller, office: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_networks, "MAX_NAMES", 2)
    await found(store, foreign)
    names: list[FqName] = [(*PROJECT, f"none-{number}") for number in range(3)]
    for name in names:
        assert await store.find_network(name) is None
    assert list(store._foreign._named) == [name_of(foreign), names[2]]
    assert [each.uuid for each in await store.networks()] == [foreign.uuid]
    for number in range(3):
        assert await store.find_network(("default-domain", f"k8s-none-{number}", "net")) is None
    assert len(store._named._without_namespace) == 2


async def test_the_pod_network_of_kube_manager_is_not_shown(in_cluster: InCluster, caller: Caller) -> None:
    """It is taken over, or in the way."""
    made = await UpstreamKubeManager(caller).pod_network("10.32.0.0/24")
    assert await (await in_cluster("default")).find_network(name_of(made)) is None


async def test_one_in_a_flat_subnet_ipam_has_its_subnets(in_cluster: InCluster, caller: Caller) -> None:
    """As that of an isolated namespace of kube-manager."""
    made = await UpstreamKubeManager(caller).pod_network("10.32.0.0/24", namespace="blue")
    store = await in_cluster("blue")
    network = await found(store, made)
    assert [each.cidr for each in network.subnets] == ["10.32.0.0/24"]
    assert await allocate_one(store, network)


async def test_one_that_is_made_later_is_told(store: VncStore, caller: Caller, office: Made) -> None:
    name = (*PROJECT, "later")
    assert await store.find_network(name) is None
    async with store.watch_networks(start=WatchStart.NOW) as changes, asyncio.timeout(10):
        body = {"fq_name": list(name), "parent_type": "project"}
        made = await caller.create("virtual-network", **body)
        added = await anext(changes)
        assert (added.type, added.object and added.object.fq_name) == (ChangeType.ADDED, name)
        await caller.delete(made)
        while (await anext(changes)).type is not ChangeType.DELETED:
            pass
    assert await store.networks() == []


async def test_those_with_pods_are_shown_after_a_restart(
    store: VncStore, foreign: Made, double: ContrailApi, clock: FakeClock
) -> None:
    network = await found(store, foreign)
    machine = await start_pod(store, [network])
    async with connect(VncAccess((double.url,)), deadline=10) as client:
        second = VncStore(client, cluster="k8s", clock=clock, projects=[PROJECT])
        await second.start()
        assert await second.networks() == [network]
        assert await second.virtual_machines() == [machine]
        await second.close()


async def test_a_manager_that_takes_over_makes_one_of_a_nad_its_own(
    in_cluster: InCluster, caller: Caller, double: ContrailApi
) -> None:
    """Also if another NAD had named it first."""
    made = await UpstreamKubeManager(caller).nad_network("net-a", CIDR, GATEWAY)
    store = await in_cluster("default", take_over=True)
    shown = await found(store, made)
    stored = await store.put_network(make_network(made.fq_name[-1], CIDR, nad="default/net-a"))
    assert (stored.uuid, stored.nad, stored.subnets) == (made.uuid, "default/net-a", shown.subnets)
    assert await store.networks() == [stored]
    await eventually(
        lambda: "default/net-a" in str(double.database.of_kind(KINDS["virtual-network"])[made.uuid].properties)
    )
    with pytest.raises(ConflictError, match="cannot change"):
        await store.put_network(make_network(made.fq_name[-1], "10.9.0.0/24", uuid=stored.uuid, nad="default/net-a"))


async def test_a_manager_that_may_not_take_over_leaves_one_of_a_nad_to_others(
    in_cluster: InCluster, caller: Caller
) -> None:
    made = await UpstreamKubeManager(caller).nad_network("net-a", CIDR, GATEWAY)
    store = await in_cluster("default")
    await found(store, made)
    with pytest.raises(ConflictError, match=f"already exists with uuid {made.uuid}"):
        await store.put_network(make_network(made.fq_name[-1], CIDR, nad="default/net-a"))
