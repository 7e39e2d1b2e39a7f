"""Take-over of pods that Contrail's kube-manager wrote: the same objects, and pods that run on."""

import pytest

from contrail_config.errors import AddressUnavailableError, StoreError
from contrail_config.objects import PodNetwork
from contrail_config.store import AddressRequest
from contrail_config.vnc.client import VncAccess, connect
from contrail_config.vnc.store import VncStore
from tests.contrail_config.vnc.store.conftest import OpenVnc
from tests.contrail_config.vnc.store.takeover.servers import (
    GATEWAY,
    NAD,
    POD_CIDR,
    POD_GATEWAY,
    UID,
    address_text,
    annotations,
    content,
    mac_of,
    taken_over,
    wanted_pod_network,
)
from tests.contrail_config.vnc.store.test_vnc_store_kills import Kill
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Caller, Made
from tests.support.fake_clock import FakeClock
from tests.support.upstream_kube_manager import UpstreamKubeManager, UpstreamPod
from tests.support.virtual_machines import NODE
from tests.support.virtual_networks import allocate_one, make_network, new_owner


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
