"""Take-over of what Contrail's kube-manager wrote: the same objects, and pods that run on."""

from typing import Any

import msgspec
import pytest

from contrail_config.errors import AddressUnavailableError, ConflictError, StoreError
from contrail_config.objects import PodNetwork, VirtualMachine, VirtualNetwork
from contrail_config.store import AddressRequest
from contrail_config.vnc.client import VncAccess, connect
from contrail_config.vnc.store import VncStore
from tests.contrail_config.vnc.store.conftest import OpenVnc
from tests.contrail_config.vnc.store.test_vnc_store_kills import Kill
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Caller, Made
from tests.support.fake_clock import FakeClock
from tests.support.upstream_kube_manager import UpstreamKubeManager, UpstreamPod
from tests.support.virtual_machines import NODE
from tests.support.virtual_networks import allocate_one, make_network, new_owner, start_pod

NAD = "net-a"
CIDR, GATEWAY = "10.1.1.0/24", "10.1.1.254"
POD_CIDR, POD_GATEWAY = "10.32.0.0/24", "10.32.0.254"
UID = "0a000000-0000-4000-8000-000000000001"


@pytest.fixture
def upstream(caller: Caller) -> UpstreamKubeManager:
    return UpstreamKubeManager(caller)


@pytest.fixture
async def pod_network(upstream: UpstreamKubeManager) -> Made:
    return await upstream.pod_network(POD_CIDR)


@pytest.fixture
async def network(upstream: UpstreamKubeManager) -> Made:
    return await upstream.nad_network(NAD, CIDR, GATEWAY)


@pytest.fixture
async def pod(upstream: UpstreamKubeManager, pod_network: Made, network: Made, router: Made) -> UpstreamPod:
    """A pod in the pod network and twice in the NAD's network."""
    made = await upstream.pod("p1", [("default", pod_network), (NAD, network), (NAD, network)], router=router, uid=UID)
    await upstream.annotate(made.interfaces[2], interface="left")
    return made


def wanted_network(**fields: Any) -> VirtualNetwork:
    """The NAD's network as our manager would make it: with another uuid and gateway."""
    return make_network(f"k8s-{NAD}-pod-network", CIDR, nad=f"default/{NAD}", **fields)


def wanted_pod_network(*cidrs: str) -> VirtualNetwork:
    return make_network("k8s-default-pod-network", *(cidrs or (POD_CIDR,)))


Content = dict[str, tuple[tuple[str, ...], dict[str, object], dict[str, object]]]


def content(double: ContrailApi) -> Content:
    """All objects by uuid: names, properties but annotations and times, and references."""
    return {
        stored.uuid: (
            stored.fq_name,
            {key: value for key, value in stored.properties.items() if key not in ("annotations", "id_perms")},
            {kind: dict(targets) for kind, targets in stored.references.items()},
        )
        for stored in double.database.objects.values()
    }


def annotations(double: ContrailApi, made: Made) -> dict[str, str]:
    pairs = double.database.objects[made.uuid].properties["annotations"]["key_value_pair"]
    return {pair["key"]: pair["value"] for pair in pairs}


def address_text(double: ContrailApi, made: Made) -> str:
    return str(double.database.objects[made.uuid].properties["instance_ip_address"])


def mac_of(double: ContrailApi, made: Made) -> str:
    macs = double.database.objects[made.uuid].properties["virtual_machine_interface_mac_addresses"]
    return str(macs["mac_address"][0])


async def taken_over(open_vnc: OpenVnc) -> tuple[VncStore, VirtualMachine]:
    store = await open_vnc(take_over=True)
    return store, await store.virtual_machine(UID)


async def test_a_pod_keeps_its_uuids_macs_and_addresses(
    open_vnc: OpenVnc, pod: UpstreamPod, double: ContrailApi
) -> None:
    _, machine = await taken_over(open_vnc)
    assert (machine.name, machine.project, machine.node) == ("k8s__default__p1", "k8s-default", NODE)
    assert [one.uuid for one in machine.interfaces] == [made.uuid for made in pod.interfaces]
    assert [one.mac for one in machine.interfaces] == [mac_of(double, made) for made in pod.interfaces]
    assert [one.addresses[0].address for one in machine.interfaces] == [
        address_text(double, made) for made in pod.addresses
    ]
    assert all(len(one.addresses) == 1 for one in machine.interfaces)


async def test_a_pod_is_in_the_networks_that_it_was_in(
    open_vnc: OpenVnc, pod: UpstreamPod, pod_network: Made, network: Made
) -> None:
    _, machine = await taken_over(open_vnc)
    assert [one.network_uuid for one in machine.interfaces] == [pod_network.uuid, network.uuid, network.uuid]
    assert [one.nad for one in machine.interfaces] == [None, f"default/{NAD}", f"default/{NAD}"]
    assert [one.config_name for one in machine.interfaces] == [None, NAD, NAD]
    assert [one.interface for one in machine.interfaces] == [None, None, "left"]
    assert [one.pod_network for one in machine.interfaces] == [PodNetwork.CLUSTER, None, None]
    first, second = machine.interfaces[0].addresses[0], machine.interfaces[1].addresses[0]
    assert (first.prefix_length, first.gateway) == (24, POD_GATEWAY)
    assert (second.prefix_length, second.gateway) == (24, GATEWAY)


async def test_nothing_but_annotations_is_written(open_vnc: OpenVnc, pod: UpstreamPod, double: ContrailApi) -> None:
    before, labels = content(double), annotations(double, pod.machine)
    del double.requests[:]
    await taken_over(open_vnc)
    assert content(double) == before
    assert labels.items() <= annotations(double, pod.machine).items()
    written = [request for request in double.requests if request.startswith(("PUT", "DELETE", "POST"))]
    paths = {request.split()[1] for request in written}
    assert paths == {"/list-bulk-collection", "/prop-collection-update"}


async def test_a_second_start_writes_nothing(open_vnc: OpenVnc, pod: UpstreamPod, double: ContrailApi) -> None:
    _, before = await taken_over(open_vnc)
    del double.requests[:]
    _, after = await taken_over(open_vnc)
    assert after == before
    assert not [request for request in double.requests if "/prop-collection-update" in request]


async def test_a_manager_that_may_not_take_over_names_the_key(open_vnc: OpenVnc, pod: UpstreamPod) -> None:
    with pytest.raises(StoreError, match=r"k8s__default__p1\): stop it, .* store\.take-over"):
        await open_vnc()


async def test_a_kill_after_each_write_leaves_what_the_next_start_completes(
    open_vnc: OpenVnc, pod: UpstreamPod, double: ContrailApi, clock: FakeClock
) -> None:
    before = content(double)
    for writes in range(4):  # three addresses, then the virtual machine
        async with connect(VncAccess((double.url,)), deadline=10, before_write=Kill(writes)) as client:
            killed = VncStore(client, cluster="k8s", clock=clock, take_over=True)
            with pytest.raises(StoreError, match="killed"):
                await killed.start()
    _, machine = await taken_over(open_vnc)
    assert len(machine.interfaces) == 3
    assert content(double) == before


async def test_a_pod_without_all_interfaces_is_named_and_nothing_is_written(
    open_vnc: OpenVnc,
    upstream: UpstreamKubeManager,
    pod: UpstreamPod,
    pod_network: Made,
    network: Made,
    router: Made,
    double: ContrailApi,
) -> None:
    half = await upstream.pod("p2", [("default", pod_network), (NAD, network)], router=router, stops_after=1)
    with pytest.raises(StoreError, match="k8s__default__p2: has the interfaces 0 of 2"):
        await open_vnc(take_over=True)
    for made in (half.machine, pod.machine):
        assert "machine" not in annotations(double, made)
    assert "owner-uuid" not in annotations(double, pod.addresses[0])


async def test_a_pod_that_no_virtual_router_has_is_named(
    open_vnc: OpenVnc, upstream: UpstreamKubeManager, pod_network: Made
) -> None:
    await upstream.pod("p3", [("default", pod_network)], router=None)
    with pytest.raises(StoreError, match="k8s__default__p3: no virtual router refers to it"):
        await open_vnc(take_over=True)


async def test_a_pod_whose_interface_has_no_address_is_named(
    open_vnc: OpenVnc, pod: UpstreamPod, caller: Caller
) -> None:
    await caller.delete(pod.addresses[1])
    with pytest.raises(StoreError, match=f"k8s__default__p1: interface {pod.interfaces[1].uuid} has no address"):
        await open_vnc(take_over=True)


async def test_a_pod_in_the_network_of_an_isolated_namespace_keeps_it(
    open_vnc: OpenVnc, upstream: UpstreamKubeManager, router: Made, double: ContrailApi
) -> None:
    isolated = await upstream.pod_network(POD_CIDR, namespace="blue")
    await upstream.pod("p4", [("default", isolated)], router=router, namespace="blue", uid=UID)
    before = content(double)
    _, machine = await taken_over(open_vnc)
    (interface,) = machine.interfaces
    assert (interface.network_uuid, interface.pod_network) == (isolated.uuid, PodNetwork.NAMESPACE)
    assert (interface.addresses[0].prefix_length, interface.addresses[0].gateway) == (24, POD_GATEWAY)
    assert content(double) == before


async def test_a_pod_in_the_network_of_another_isolated_namespace_keeps_it(
    open_vnc: OpenVnc, upstream: UpstreamKubeManager, pod_network: Made, router: Made
) -> None:
    """A NAD names it, as in the example of the design."""
    isolated = await upstream.pod_network(POD_CIDR, namespace="blue")
    networks = [("default", pod_network), ("extns", isolated)]
    await upstream.pod("p4", networks, router=router, namespace="red", uid=UID)
    _, machine = await taken_over(open_vnc)
    second = machine.interfaces[1]
    assert (second.network_uuid, second.nad, second.pod_network) == (isolated.uuid, "red/extns", PodNetwork.NAMESPACE)


async def test_a_pod_network_in_a_project_of_no_namespace_is_named(
    open_vnc: OpenVnc, upstream: UpstreamKubeManager, pod_network: Made, router: Made, caller: Caller
) -> None:
    """As with `cluster_project` of kube-manager."""
    project = await caller.create("project", fq_name=["default-domain", "admin"], parent_type="domain")
    links = (await caller.read(pod_network))["network_ipam_refs"]
    shared = [{"to": link["to"], "uuid": link["uuid"], "attr": {"ipam_subnets": []}} for link in links]
    made = await caller.create(
        "virtual-network",
        fq_name=[*project.fq_name, "k8s-default-pod-network"],
        parent_type="project",
        network_ipam_refs=shared,
        address_allocation_mode="flat-subnet-only",
    )
    await upstream.pod("p4", [("default", made)], router=router)
    with pytest.raises(StoreError, match=r"k8s__default__p4: network default-domain:admin:.* as with cluster_project"):
        await open_vnc(take_over=True)


async def test_networks_of_one_flat_subnet_ipam_never_give_an_address_twice(
    open_vnc: OpenVnc, upstream: UpstreamKubeManager, pod: UpstreamPod, pod_network: Made, double: ContrailApi
) -> None:
    """The server gives each once, so a reservation beside it would be in the way."""
    made = await upstream.pod_network(POD_CIDR, namespace="blue")
    before = content(double)
    store, machine = await taken_over(open_vnc)
    pool = await store.put_network(wanted_pod_network())
    wanted = make_network(made.fq_name[-1], subnets=pool.subnets, namespace="blue", fq_name=tuple(made.fq_name))
    isolated = await store.put_network(wanted)
    assert (isolated.uuid, isolated.namespace, content(double)) == (made.uuid, "blue", before)
    owners = [new_owner() for _ in range(4)]
    asked = [AddressRequest(isolated.uuid, 4, owner, reserved_in=wanted_pod_network().uuid) for owner in owners]
    before_them = await allocate_one(store, pool)  # also tries the address of the DNS service
    double.requests.clear()
    given = [each.address for each in await store.allocate(asked)]
    assert len(double.requests) == 4, "none was tried in vain"
    old = [address.address for address in machine.interfaces[0].addresses]
    after = [await allocate_one(store, pool) for _ in range(3)]
    assert len({*given, *old, before_them, *after}) == 9
    with pytest.raises(AddressUnavailableError):
        await allocate_one(store, pool, address=given[0])
    await store.release(owners, hold=0.0)
    assert await allocate_one(store, pool, address=given[0]) == given[0]


async def test_pods_of_other_clusters_are_left_alone(
    open_vnc: OpenVnc, upstream: UpstreamKubeManager, pod: UpstreamPod, double: ContrailApi
) -> None:
    await upstream.annotate(pod.machine, cluster="another")
    store = await open_vnc(take_over=True)
    assert await store.virtual_machines() == []
    assert "machine" not in annotations(double, pod.machine)


async def test_a_program_that_writes_pods_after_the_start_is_still_noticed(
    open_vnc: OpenVnc, upstream: UpstreamKubeManager, pod: UpstreamPod, pod_network: Made, router: Made
) -> None:
    store, _ = await taken_over(open_vnc)
    await upstream.pod("p5", [("default", pod_network)], router=router)
    with pytest.raises(StoreError, match="k8s__default__p5"):
        await store.watch_other_writers()


async def test_a_network_keeps_uuid_gateway_and_ipam(open_vnc: OpenVnc, network: Made, double: ContrailApi) -> None:
    before = content(double)
    store = await open_vnc(take_over=True)
    stored = await store.put_network(wanted_network(mtu=1400, dns=("10.1.1.10",)))
    assert (stored.uuid, stored.nad, stored.dns) == (network.uuid, f"default/{NAD}", ("10.1.1.10",))
    assert [subnet.gateway for subnet in stored.subnets] == [GATEWAY]
    assert stored.vni == before[network.uuid][1]["virtual_network_network_id"]
    assert content(double) == before
    assert await store.networks() == [stored]


async def test_the_pod_network_keeps_uuid_and_flat_ipam(
    open_vnc: OpenVnc, pod_network: Made, double: ContrailApi
) -> None:
    before = content(double)
    store = await open_vnc(take_over=True)
    stored = await store.put_network(wanted_pod_network())
    assert (stored.uuid, stored.subnets[0].gateway) == (pod_network.uuid, POD_GATEWAY)
    assert content(double) == before


async def test_a_network_that_was_taken_over_is_changed_in_its_annotation_only(
    open_vnc: OpenVnc, network: Made, double: ContrailApi
) -> None:
    before = content(double)
    store = await open_vnc(take_over=True)
    stored = await store.put_network(wanted_network())
    assert (await store.put_network(msgspec.structs.replace(stored, mtu=1300))).mtu == 1300
    assert content(double) == before


async def test_a_manager_without_the_key_keeps_what_was_taken_over(
    open_vnc: OpenVnc, pod: UpstreamPod, pod_network: Made, double: ContrailApi
) -> None:
    store, machine = await taken_over(open_vnc)
    stored = await store.put_network(wanted_pod_network())
    before = content(double)
    again = await open_vnc()
    assert await again.virtual_machines() == [machine]
    assert await again.networks() == [stored]
    assert (await again.put_network(msgspec.structs.replace(stored, mtu=1300))).mtu == 1300
    assert content(double) == before


async def test_a_network_of_other_subnets_is_a_conflict(
    open_vnc: OpenVnc, network: Made, pod_network: Made, double: ContrailApi
) -> None:
    before = content(double)
    store = await open_vnc(take_over=True)
    with pytest.raises(ConflictError, match=r"has the subnets 10\.32\.0\.0/24, not 10\.64\.0\.0/24"):
        await store.put_network(wanted_pod_network("10.64.0.0/24"))
    assert content(double) == before


async def test_subnets_of_a_network_that_was_taken_over_cannot_change(
    open_vnc: OpenVnc, pod_network: Made, double: ContrailApi
) -> None:
    before = content(double)
    store = await open_vnc(take_over=True)
    stored = await store.put_network(wanted_pod_network())
    more = make_network("k8s-default-pod-network", POD_CIDR, "10.64.0.0/24")
    with pytest.raises(ConflictError, match="cannot change"):
        await store.put_network(msgspec.structs.replace(stored, subnets=more.subnets))
    assert content(double) == before


async def test_a_network_of_others_stays_a_conflict_for_a_manager_that_may_not_take_over(
    open_vnc: OpenVnc, network: Made
) -> None:
    store = await open_vnc()
    with pytest.raises(ConflictError, match=f"already exists with uuid {network.uuid}"):
        await store.put_network(wanted_network())


async def test_new_pods_get_addresses_that_the_old_ones_do_not_have(
    open_vnc: OpenVnc, pod: UpstreamPod, pod_network: Made, network: Made, double: ContrailApi
) -> None:
    store, machine = await taken_over(open_vnc)
    networks = [await store.put_network(wanted_pod_network()), await store.put_network(wanted_network())]
    old = {address.address for interface in machine.interfaces for address in interface.addresses}
    for one in networks:
        assert not old.intersection([await allocate_one(store, one) for _ in range(5)])
    started = await start_pod(store, networks, "new")
    linked = double.database.objects[started.interfaces[0].uuid].references["virtual-network"]
    assert list(linked) == [pod_network.uuid]


async def test_pods_of_isolated_namespaces_have_addresses_that_nobody_has_in_the_pod_network(
    open_vnc: OpenVnc, pod: UpstreamPod
) -> None:
    """The manager names the pod network by the uuid that it would have made it with."""
    store, machine = await taken_over(open_vnc)
    pool = await store.put_network(wanted_pod_network())
    isolated = await store.put_network(make_network("k8s-blue-pod-network", subnets=pool.subnets, namespace="blue"))
    old = {address.address for address in machine.interfaces[0].addresses}
    owner, asked = new_owner(), wanted_pod_network().uuid
    assert asked != pool.uuid
    (given,) = await store.allocate([AddressRequest(isolated.uuid, 4, owner, reserved_in=asked)])
    assert given.address not in old
    with pytest.raises(AddressUnavailableError):
        await allocate_one(store, pool, address=given.address)
    await store.release([owner], hold=0.0)
    assert await allocate_one(store, pool, address=given.address) == given.address


async def test_an_owner_keeps_the_address_that_was_taken_over(
    open_vnc: OpenVnc, pod: UpstreamPod, double: ContrailApi
) -> None:
    store, machine = await taken_over(open_vnc)
    network = await store.put_network(wanted_network())
    kept = await allocate_one(store, network, machine.interfaces[1].uuid)
    assert kept == address_text(double, pod.addresses[1])


async def test_repairs_find_nothing_to_repair(open_vnc: OpenVnc, pod: UpstreamPod, double: ContrailApi) -> None:
    store, _ = await taken_over(open_vnc)
    await store.put_network(wanted_pod_network())
    await store.put_network(wanted_network())
    before = content(double)
    await store.repairs.repair()
    await store.repairs.repair()
    await store.router_links.add_missing()
    await store.recover_virtual_machines()
    assert content(double) == before


async def test_a_deleted_pod_leaves_held_addresses_only(
    open_vnc: OpenVnc, pod: UpstreamPod, double: ContrailApi, router: Made
) -> None:
    store, _ = await taken_over(open_vnc)
    await store.delete_virtual_machine(UID, hold=60.0)
    assert double.database.of_kind(KINDS["virtual-machine"]) == {}
    assert double.database.of_kind(KINDS["virtual-machine-interface"]) == {}
    assert set(double.database.of_kind(KINDS["instance-ip"])) == {made.uuid for made in pod.addresses}
    assert "virtual-machine" not in {
        kind for kind, targets in double.database.objects[router.uuid].references.items() if targets
    }
    assert "held-until" in annotations(double, pod.addresses[0])


async def test_floating_ips_of_services_do_not_keep_a_deleted_pod(
    open_vnc: OpenVnc, pod: UpstreamPod, pod_network: Made, caller: Caller, double: ContrailApi
) -> None:
    service = await caller.address(pod_network)
    floating = await caller.create(
        "floating-ip",
        fq_name=[*service.fq_name, "service"],
        parent_type="instance-ip",
        virtual_machine_interface_refs=[made.reference for made in pod.interfaces],
    )
    store, _ = await taken_over(open_vnc)
    await store.delete_virtual_machine(UID, hold=0.0)
    assert double.database.of_kind(KINDS["virtual-machine-interface"]) == {}
    assert floating.uuid in double.database.objects


async def test_a_node_of_another_name_with_the_same_virtual_router_does_not_lose_the_pod(
    open_vnc: OpenVnc, pod: UpstreamPod, double: ContrailApi
) -> None:
    store, machine = await taken_over(open_vnc)
    del double.requests[:]
    renamed = msgspec.structs.replace(machine, node=NODE.upper())
    await store.put_virtual_machine(renamed)
    assert (await store.virtual_machine(UID)).node == NODE.upper()
    assert not [request for request in double.requests if "/ref-update" in request]


async def test_kube_manager_finds_and_deletes_what_this_manager_wrote(
    open_vnc: OpenVnc, upstream: UpstreamKubeManager, pod: UpstreamPod, caller: Caller, double: ContrailApi
) -> None:
    """The way back: it lists pods by owner and cluster, and finds the rest by references and names."""
    store, _ = await taken_over(open_vnc)
    networks = [await store.put_network(wanted_pod_network()), await store.put_network(wanted_network())]
    started = await start_pod(store, networks, "new")
    machine = Made("virtual-machine", started.uuid, [started.name])
    ours, theirs = annotations(double, machine), annotations(double, pod.machine)
    assert theirs.keys() - ours.keys() == {"labels"}
    assert (ours["owner"], ours["cluster"], ours["kind"]) == (theirs["owner"], theirs["cluster"], theirs["kind"])
    interface = Made("virtual-machine-interface", started.interfaces[1].uuid, [])
    ours, theirs = annotations(double, interface), annotations(double, pod.interfaces[1])
    assert theirs.keys() <= ours.keys()
    assert (ours["index"], ours["network"]) == ("1/2", "default")
    assert double.database.objects[interface.uuid].fq_name[:2] == ("default-domain", started.project)
    for uid, deletes in ((started.uuid, 5), (UID, 7)):
        assert await upstream.delete_pod(uid) == [200] * deletes
    assert double.database.of_kind(KINDS["instance-ip"]) == {}
