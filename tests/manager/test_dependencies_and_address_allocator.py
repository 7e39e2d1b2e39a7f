"""A pod waits for its dependencies and proceeds when they appear, in order of arrival."""

import asyncio
import json

import pytest

from contrail_config.objects import Subnet, VirtualNetwork, network_uuid
from manager.api.types import PodState
from manager.controller import pod_writer
from manager.source import Pod
from tests.support.pods import FOREIGN_CONFIG, make_nad, make_namespace, make_pod, reference
from tests.support.running_manager import DEADLINE, RunningManager

NET_A = make_nad("net-a", cidr="10.1.0.0/16")
NETWORK = "default-domain:k8s-blue:k8s-net-a-pod-network"
TINY = make_nad("tiny", cidr="10.6.0.0/29")  # room for 5


def asking(name: str, **described: object) -> Pod:
    return make_pod(name, networks=json.dumps([{"name": "net-a", **described}]))


@pytest.fixture
def short_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes released addresses available after a moment instead of ten seconds."""
    monkeypatch.setattr(pod_writer, "DEFAULT_HOLD", 0.1)


async def test_for_a_nad(running: RunningManager) -> None:
    pod = make_pod(networks="net-a,net-b")
    await running.send_list(pod)
    await running.apply(NET_A)
    assert (await running.view(pod)).state is PodState.WAITING
    await running.apply(make_nad("net-b", cidr="10.2.0.0/16"))
    assert len((await running.vm(pod)).interfaces) == 3
    assert await running.reasons(pod) == ["NetworkNotFound", "NetworkNotFound", "InterfacesAssigned"]
    view = await running.view(pod)
    assert (view.state, view.reason, view.message) == (PodState.READY, None, None)


async def test_for_a_nad_to_be_corrected(running: RunningManager) -> None:
    pod = make_pod(networks="net-a")
    await running.send_list(make_nad("net-a", cidr="nonsense"), pod)
    assert await running.reasons(pod) == ["NetworkUnusable"]
    await running.apply(NET_A)
    assert (await running.view(pod)).state is PodState.READY


async def test_for_a_nad_to_change_to_this_plugin(running: RunningManager) -> None:
    pod = make_pod(networks="net-a")
    await running.send_list(make_nad("net-a", config=FOREIGN_CONFIG), pod)
    assert await running.reasons(pod) == ["ForeignNetwork"]
    await running.apply(NET_A)
    assert (await running.view(pod)).state is PodState.READY


async def test_for_a_network_that_another_nad_creates(running: RunningManager) -> None:
    by_nad, by_name = make_pod("by-nad", networks="alias"), make_pod("by-name", network=_to("net-a"))
    await running.send_list(make_nad("alias", cidr=None, network=_to("net-a")), by_nad, by_name)
    assert await running.allocated_count() == 0
    await running.apply(NET_A)
    assert (await running.vm(by_nad)).interfaces[1].network[2] == "k8s-net-a-pod-network"
    assert (await running.vm(by_name)).interfaces[0].network[2] == "k8s-net-a-pod-network"


async def test_for_a_network_that_somebody_else_creates(running: RunningManager) -> None:
    name = ("default-domain", "k8s-extns", "made-elsewhere")
    pod = make_pod(networks="alias")
    nad = make_nad("alias", cidr=None, network=reference("k8s-extns", "made-elsewhere"))
    await running.send_list(nad, pod)
    network = VirtualNetwork(fq_name=name, uuid=network_uuid(name), subnets=(Subnet("10.9.0.0/24", "10.9.0.1"),))
    await running.store.put_network(network)
    vm = await running.wait_for_vm(pod)
    assert vm.interfaces[1].addresses[0].address == "10.9.0.2"
    await running.idle()
    assert await running.reasons(nad) == ["NetworkNotFound"]


async def test_for_the_annotation_of_its_namespace_to_be_corrected(running: RunningManager) -> None:
    pod = make_pod()
    await running.send_list(make_namespace(network="nonsense"), pod)
    ((reason, message),) = await running.events_on(pod)
    assert reason == "AnnotationInvalid"
    assert "namespace blue" in message
    await running.apply(make_namespace())
    assert (await running.view(pod)).state is PodState.READY


async def test_for_a_uid_that_another_pod_has(running: RunningManager) -> None:
    first, second = make_pod("first"), make_pod("second", uid=make_pod("first").uid)
    await running.send_list(first, second)
    assert await _last(running, second) == ("UidTaken", f"uid {first.uid} is already used by pod blue/first")
    await running.remove(first)
    assert (await running.vm(second)).pod == "second"


async def test_for_a_mac_that_another_pod_requested(running: RunningManager) -> None:
    first, second = asking("first", mac="02:00:00:00:00:07"), asking("second", mac="02:00:00:00:00:07")
    await running.send_list(NET_A, first, second)
    reason, message = await _last(running, second)
    assert reason == "MacAddressTaken"
    assert message == f"MAC 02:00:00:00:00:07 in network {NETWORK} is already used by pod blue/first"
    await running.remove(first)
    assert (await running.vm(second)).interfaces[1].mac == "02:00:00:00:00:07"


@pytest.mark.usefixtures("short_holds")
async def test_for_an_address_that_another_pod_has(running: RunningManager) -> None:
    first, second = asking("first", ips=["10.1.0.7"]), asking("second", ips=["10.1.0.7"])
    await running.send_list(NET_A, first, second)
    reason, message = await _last(running, second)
    assert reason == "AddressUnavailable"
    assert "10.1.0.7" in message
    await running.remove(first)
    vm = await running.wait_for_vm(second)
    assert vm.interfaces[1].addresses[0].address == "10.1.0.7"


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (asking("web", ips=["10.2.0.7"]), "AddressUnavailable"),
        (asking("web", ips=["fd00:2::7"]), "AddressUnavailable"),
        (asking("web", ips=["10.1.0.1"]), "AddressUnavailable"),
        (asking("web", **{"default-route": ["10.2.0.9"]}), "AnnotationInvalid"),
        (make_pod("web", default_network='[{"name": "net-a", "ips": ["10.2.0.7"]}]'), "AddressUnavailable"),
    ],
)
async def test_for_a_network_that_can_satisfy_its_request(running: RunningManager, pod: Pod, reason: str) -> None:
    await running.send_list(NET_A, pod)
    assert await running.reasons(pod) == [reason]
    assert (await running.view(pod)).state is PodState.WAITING
    assert await running.allocated_count() == 0
    await running.remove(NET_A)
    await running.apply(make_nad("net-a", cidr="10.2.0.0/16,10.1.0.0/24,fd00:2::/64", gateway="10.1.0.9", generation=2))
    assert (await running.view(pod)).state is PodState.READY


async def test_for_a_network_whose_addresses_include_the_requested_gateway(running: RunningManager) -> None:
    nad = make_nad("net-a", cidr="10.1.0.0/16,10.2.0.0/16")
    pod = asking("web", **{"default-route": ["10.2.0.9"]})
    await running.send_list(nad, pod)
    assert await running.reasons(pod) == ["AnnotationInvalid"]
    assert (await running.view(pod)).state is PodState.WAITING
    assert await running.allocated_count() == 0
    await running.remove(nad)
    await running.apply(make_nad("net-a", cidr="10.2.0.0/16", generation=2))
    assert (await running.vm(pod)).interfaces[1].addresses[0].gateway == "10.2.0.9"


@pytest.mark.lacking("vnc", "the server has no /32")
async def test_for_a_network_with_a_gateway(running: RunningManager) -> None:
    nad, pod = make_nad("net-a", cidr="10.1.0.1/32"), make_pod(networks="net-a", default_gw="net-a")
    await running.send_list(nad, pod)
    assert await running.reasons(pod) == ["AnnotationInvalid"]
    await running.remove(nad)
    await running.apply(make_nad("net-a", generation=2))
    assert (await running.view(pod)).state is PodState.READY


@pytest.mark.parametrize("asked", [{"ips": ["10.1.0.7"]}, {"mac": "02:00:00:00:00:07"}])
async def test_for_two_nads_to_be_bound_to_different_networks(
    running: RunningManager, asked: dict[str, object]
) -> None:
    alias = make_nad("alias", cidr=None, network=_to("net-a"))
    pod = make_pod(networks=json.dumps([{"name": name, **asked} for name in ("net-a", "alias")]))
    await running.send_list(NET_A, alias, pod)
    assert (await running.view(pod)).state is PodState.WAITING
    await running.remove(alias)
    await running.apply(make_nad("alias", cidr="10.1.0.0/24", generation=2))
    assert (await running.view(pod)).state is PodState.READY


async def test_for_two_selections_of_its_first_network_to_agree(running: RunningManager) -> None:
    alias = make_nad("alias", cidr=None, network=_to("net-a"))
    pod = make_pod(default_network="alias", network=_to("net-b"))
    await running.send_list(NET_A, make_nad("net-b", cidr="10.2.0.0/16"), alias, pod)
    assert await running.reasons(pod) == ["AnnotationInvalid"]
    await running.remove(alias)
    await running.apply(make_nad("alias", cidr=None, network=_to("net-b"), generation=2))
    assert (await running.view(pod)).state is PodState.READY


async def test_an_unsatisfiable_request_does_not_block_other_pods(running: RunningManager) -> None:
    """It holds no address and no position in a queue."""
    waiting, other = asking("web", ips=["10.2.0.7"]), make_pod("other", networks="net-a")
    await running.send_list(NET_A, waiting, other)
    assert (await running.view(other)).state is PodState.READY
    assert await running.allocated_count() == 2


@pytest.mark.usefixtures("short_holds")
async def test_for_a_free_address_first_come_first_served(running: RunningManager) -> None:
    served = [make_pod(f"served-{number}", networks="tiny") for number in range(5)]
    waiting = [make_pod(f"waiting-{number}", networks="tiny") for number in range(4)]
    await running.send_list(TINY, *served, *waiting)
    assert await _last(running, waiting[0]) == (
        "AddressesExhausted",
        "network default-domain:k8s-blue:k8s-tiny-pod-network: no free IPv4 address",
    )
    assert (await running.view(waiting[3])).state is PodState.WAITING
    arrivals = asyncio.create_task(_arrivals(running, 3))
    for pod in served[:3]:
        await running.remove(pod)
    async with asyncio.timeout(DEADLINE):
        assert await arrivals == ["waiting-0", "waiting-1", "waiting-2"]
    await running.idle()
    assert (await running.view(waiting[3])).state is PodState.WAITING
    assert await running.allocated_count() == 2 * 5


@pytest.mark.usefixtures("short_holds")
async def test_a_latecomer_does_not_overtake_a_waiting_pod(running: RunningManager) -> None:
    served = [make_pod(f"served-{number}", networks="tiny") for number in range(5)]
    await running.send_list(TINY, *served, make_pod("waiting", networks="tiny"))
    arrivals = asyncio.create_task(_arrivals(running, 1))
    await running.send()
    await running.remove(served[0])
    await running.apply(make_pod("latecomer", networks="tiny"))
    async with asyncio.timeout(DEADLINE):
        assert await arrivals == ["waiting"]
    await running.idle()
    assert "other pods were first" in (await running.events_on(make_pod("latecomer")))[0][1]


@pytest.mark.usefixtures("short_holds")
async def test_a_deleted_waiting_pod_does_not_block_the_others(running: RunningManager) -> None:
    served = [make_pod(f"served-{number}", networks="tiny") for number in range(5)]
    first, second = make_pod("first", networks="tiny"), make_pod("second", networks="tiny")
    await running.send_list(TINY, *served, first, second)
    await running.remove(first, served[0])
    assert (await running.wait_for_vm(second)).pod == "second"


async def test_deleted_waiting_pods_leave_nothing_behind(running: RunningManager) -> None:
    pods = [make_pod("lost", networks="nope"), *(make_pod(f"p{number}", networks="tiny") for number in range(7))]
    await running.send_list(TINY, *pods)
    await running.remove(*pods)
    controller = running.manager.pods
    assert controller.records == {}
    assert (len(controller.pending), len(controller.claims), controller.allocator.waiting) == (0, 0, 0)
    assert await running.allocated_count() == 0


def _to(nad: str) -> str:
    return reference("k8s-blue", f"k8s-{nad}-pod-network")


async def _last(running: RunningManager, pod: Pod) -> tuple[str, str]:
    """(reason, message) of the newest event on a pod of this name, whose uid another pod may have too."""
    events = await running.store.events(namespace=pod.namespace, name=pod.name)
    return events[-1].reason, events[-1].message


async def _arrivals(running: RunningManager, number: int) -> list[str]:
    """The next pods whose virtual machines are written, in order."""
    known = {vm.pod for vm in await running.store.virtual_machines()}
    names: list[str] = []
    async with running.store.watch_virtual_machines() as changes:
        async for change in changes:
            vm = change.object
            if vm is not None and change.type == "ADDED" and vm.pod not in known:
                known.add(vm.pod)
                names.append(vm.pod)
            if len(names) == number:
                break
    return names
