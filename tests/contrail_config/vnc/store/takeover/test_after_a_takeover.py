"""What runs on after a take-over: addresses of new pods, repairs, deletions, and the way back."""

import msgspec
import pytest

from contrail_config.errors import AddressUnavailableError
from contrail_config.store import AddressRequest
from tests.contrail_config.vnc.store.conftest import OpenVnc
from tests.contrail_config.vnc.store.takeover.servers import (
    UID,
    address_text,
    annotations,
    content,
    taken_over,
    wanted_network,
    wanted_pod_network,
)
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Caller, Made
from tests.support.upstream_kube_manager import UpstreamKubeManager, UpstreamPod
from tests.support.virtual_machines import NODE
from tests.support.virtual_networks import allocate_one, make_network, new_owner, start_pod


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
