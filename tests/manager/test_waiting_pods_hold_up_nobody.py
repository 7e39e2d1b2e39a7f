"""A pod that waits keeps nothing that others need, and sees when what it waits for is no longer its choice."""

import json

import pytest

from contrail_config.errors import StoreRejectedError, StoreUnavailableError
from contrail_config.objects import VirtualMachine
from manager.api.types import PodState
from manager.source import Applied, Gone, Pod
from tests.support.following import eventually
from tests.support.pods import make_nad, make_namespace, make_pod, reference
from tests.support.running_manager import RunningManager

NET_A = make_nad("net-a")
MAC = "02:00:00:00:00:07"


async def is_served(running: RunningManager, pod: Pod) -> bool:
    return (await running.view(pod)).state is PodState.READY


async def test_addresses_of_a_machine_that_could_not_be_written_do_not_keep_their_network(
    running: RunningManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the definition that was made anew would wait for the pod, and the pod for the definition."""
    pod = make_pod(networks="net-a")
    await running.tell_all(NET_A)

    async def refuse(_machine: VirtualMachine) -> None:
        raise StoreUnavailableError("not now")

    with monkeypatch.context() as broken:
        broken.setattr(running.store, "put_virtual_machine", refuse)
        running.played.send(Applied(pod))
        await running.played.taken()
        await eventually(lambda: running.manager.pods.records["blue/web-0"].unconfirmed is not None)
        running.played.send(Gone(NET_A), Applied(make_nad("net-a", cidr="10.2.0.0/16", generation=2)))
        await running.played.taken()
    machine = await running.written(pod)
    assert machine.interfaces[1].addresses[0].address == "10.2.0.2"


async def test_a_pod_whose_list_the_store_does_not_take_is_told_once_and_tried_again(
    running: RunningManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = make_pod()
    tries = []

    async def refuse(machine: VirtualMachine) -> None:
        tries.append(machine)
        raise StoreRejectedError("machine web-0: 403 Forbidden: exceeded quota")

    with monkeypatch.context() as broken:
        broken.setattr(running.store, "put_virtual_machine", refuse)
        running.played.send(Applied(pod))
        await eventually(lambda: len(tries) >= 3)
        assert await running.told(pod) == [("WriteRefused", "machine web-0: 403 Forbidden: exceeded quota")]
    await running.written(pod)


class TestWhereTheNamespaceChooses:
    async def test_an_annotation_that_names_nothing_can_be_taken_away(self, running: RunningManager) -> None:
        pod = make_pod()
        await running.tell_all(make_namespace(network=reference("k8s-blue", "typo")), pod)
        assert await running.reasons(pod) == ["NetworkNotFound"]
        await running.apply(make_namespace())
        assert await is_served(running, pod)

    async def test_it_may_move_away_from_a_network_that_is_full(self, running: RunningManager) -> None:
        small, large = make_nad("small", cidr="10.3.0.0/30"), make_nad("large", cidr="10.4.0.0/16")
        pods = [make_pod("first"), make_pod("second")]
        moves = [
            make_namespace(network=reference("k8s-blue", f"k8s-{name}-pod-network")) for name in ("small", "large")
        ]
        await running.tell_all(small, large, moves[0], *pods)
        assert not all([await is_served(running, pod) for pod in pods])
        await running.apply(moves[1])
        assert all([await is_served(running, pod) for pod in pods])


async def test_a_refused_pod_does_not_keep_the_mac_that_it_asked_for(running: RunningManager) -> None:
    def asking(name: str, **wishes: object) -> Pod:
        return make_pod(name, networks=json.dumps([{"name": "net-a", **wishes}]))

    holder, waits = asking("holder", ips=["10.1.0.7"]), asking("first", ips=["10.1.0.7"], mac=MAC)
    await running.tell_all(NET_A, holder, waits)
    assert await running.reasons(waits) == ["AddressUnavailable"]
    second = asking("second", mac=MAC)
    await running.apply(second)
    assert await running.reasons(second) == ["MacAddressTaken"]
    await running.apply(make_pod("first", networks="[nonsense"))
    assert await is_served(running, second)
