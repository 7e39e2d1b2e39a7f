"""A waiting pod holds nothing that others need, and follows later selections of its namespace."""

import json

import pytest

from contrail_config.errors import StoreRejectedError, StoreUnavailableError
from contrail_config.objects import VirtualMachine, interface_mac, interface_uuid
from manager.api.types import PodState
from manager.source import Applied, Gone, Pod
from tests.support.pods import make_nad, make_namespace, make_pod, reference
from tests.support.recorded_reflector import eventually
from tests.support.running_manager import RunningManager

NET_A = make_nad("net-a")
MAC = "02:00:00:00:00:07"


async def is_ready(running: RunningManager, pod: Pod) -> bool:
    return (await running.view(pod)).state is PodState.READY


async def test_addresses_of_an_unwritten_virtual_machine_do_not_block_its_network(
    running: RunningManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the recreated NAD would wait for the pod, and the pod for the NAD."""
    pod = make_pod(networks="net-a")
    await running.send_list(NET_A)

    async def refuse(_machine: VirtualMachine) -> None:
        raise StoreUnavailableError("not now")

    with monkeypatch.context() as broken:
        broken.setattr(running.store, "put_virtual_machine", refuse)
        running.scripted.send(Applied(pod))
        await running.scripted.taken()
        await eventually(lambda: running.manager.pods.records["blue/web-0"].unconfirmed is not None)
        running.scripted.send(Gone(NET_A), Applied(make_nad("net-a", cidr="10.2.0.0/16", generation=2)))
        await running.scripted.taken()
        await running.manager.nads.queue.idle()
    vm = await running.wait_for_vm(pod)
    assert vm.interfaces[1].addresses[0].address == "10.2.0.2"


async def test_a_list_rejected_by_the_store_is_reported_once_and_retried(
    running: RunningManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = make_pod()
    tries = []

    async def refuse(vm: VirtualMachine) -> None:
        tries.append(vm)
        raise StoreRejectedError("machine web-0: 403 Forbidden: exceeded quota")

    with monkeypatch.context() as broken:
        broken.setattr(running.store, "put_virtual_machine", refuse)
        running.scripted.send(Applied(pod))
        await eventually(lambda: len(tries) >= 3)
        assert await running.events_on(pod) == [("WriteRefused", "machine web-0: 403 Forbidden: exceeded quota")]
    await running.wait_for_vm(pod)


async def test_a_rejected_deletion_of_its_predecessor_is_reported_once(
    running: RunningManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod, successor = make_pod(), make_pod(generation=2)
    await running.send_list(pod)
    tries = []

    async def refuse(uuid: str, *, hold: float) -> None:
        tries.append((uuid, hold))
        raise StoreRejectedError("machine web-0: 403 Forbidden: permission denied")

    with monkeypatch.context() as broken:
        broken.setattr(running.store, "delete_virtual_machine", refuse)
        running.scripted.send(Gone(pod), Applied(successor))
        await eventually(lambda: len(tries) >= 3)
        reported = ("WriteRefused", "machine web-0: 403 Forbidden: permission denied")
        assert await running.events_on(successor) == [reported]
        view = await running.view(successor)
        assert (view.state, view.reason) == (PodState.WAITING, "WriteRefused")
    await running.wait_for_vm(successor)


class TestNamespaceSelection:
    async def test_a_dangling_annotation_can_be_removed(self, running: RunningManager) -> None:
        pod = make_pod()
        await running.send_list(make_namespace(network=reference("k8s-blue", "typo")), pod)
        assert await running.reasons(pod) == ["NetworkNotFound"]
        await running.apply(make_namespace())
        assert await is_ready(running, pod)

    async def test_the_namespace_can_select_another_network_than_a_full_one(self, running: RunningManager) -> None:
        small, large = make_nad("small", cidr="10.3.0.0/30"), make_nad("large", cidr="10.4.0.0/16")
        pods = [make_pod("first"), make_pod("second")]
        moves = [
            make_namespace(network=reference("k8s-blue", f"k8s-{name}-pod-network")) for name in ("small", "large")
        ]
        await running.send_list(small, large, moves[0], *pods)
        assert not all([await is_ready(running, pod) for pod in pods])
        await running.apply(moves[1])
        assert all([await is_ready(running, pod) for pod in pods])


async def test_a_refused_pod_does_not_keep_its_requested_mac(running: RunningManager) -> None:
    def asking(name: str, **requested: object) -> Pod:
        return make_pod(name, networks=json.dumps([{"name": "net-a", **requested}]))

    holder, waits = asking("holder", ips=["10.1.0.7"]), asking("first", ips=["10.1.0.7"], mac=MAC)
    await running.send_list(NET_A, holder, waits)
    assert await running.reasons(waits) == ["AddressUnavailable"]
    second = asking("second", mac=MAC)
    await running.apply(second)
    assert await running.reasons(second) == ["MacAddressTaken"]
    await running.apply(make_pod("first", networks="[nonsense"))
    assert await is_ready(running, second)


async def test_a_requested_mac_that_a_living_pod_has_by_derivation_is_taken(running: RunningManager) -> None:
    holder = make_pod("holder", networks="net-a")
    await running.send_list(NET_A, holder)
    mac = (await running.wait_for_vm(holder)).interfaces[1].mac
    newcomer = make_pod("newcomer", networks=json.dumps([{"name": "net-a", "mac": mac}]))
    await running.apply(newcomer)
    assert await running.reasons(newcomer) == ["MacAddressTaken"]
    await running.remove(holder)
    assert (await running.wait_for_vm(newcomer)).interfaces[1].mac == mac


async def test_a_derived_mac_that_a_living_pod_requested_is_derived_again(running: RunningManager) -> None:
    pod = make_pod("later", networks="net-a")
    mac = interface_mac(interface_uuid(pod.uid, 1))
    earlier = make_pod("earlier", networks=json.dumps([{"name": "net-a", "mac": mac}]))
    await running.send_list(NET_A, earlier, pod)
    assert (await running.wait_for_vm(earlier)).interfaces[1].mac == mac
    later = await running.wait_for_vm(pod)
    assert later.interfaces[1].mac == interface_mac(interface_uuid(pod.uid, 1), 1)
    assert await running.reasons(pod) == ["InterfacesAssigned"]
