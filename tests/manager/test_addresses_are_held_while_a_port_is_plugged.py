"""A pod can go before its sandbox does: its addresses are not given again before the node has unplugged the ports."""

import asyncio
import json

import pytest

from contrail_config.objects import interface_uuid
from contrail_config.store import UNPLUGGED_HOLD
from manager.api.types import PodState
from manager.controller import pod_writer
from manager.source import Applied, Gone, Pod
from tests.support.pods import make_nad, make_pod
from tests.support.running_manager import RunningManager

NET_A = make_nad("net-a")


def asking(name: str) -> Pod:
    """A pod that insists on one address, so that it shows when that can be given again."""
    return make_pod(name, networks=json.dumps([{"name": "net-a", "ips": ["10.1.0.7"]}]))


FIRST, SECOND = asking("first"), asking("second")
INTERFACES = [interface_uuid(FIRST.uid, index) for index in range(2)]


@pytest.fixture(autouse=True)
def short_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hold after an orderly end is over in a moment; the other one is not."""
    monkeypatch.setattr(pod_writer, "DEFAULT_HOLD", 0.05)


async def test_after_an_orderly_end_the_hold_is_short(running: RunningManager) -> None:
    await running.tell_all(NET_A, FIRST, SECOND)
    await running.remove(FIRST)
    await running.written(SECOND)


async def test_while_a_port_is_plugged_it_is_long(running: RunningManager) -> None:
    await running.tell_all(NET_A, FIRST, SECOND)
    running.plugged.add(FIRST.uid)
    await running.remove(FIRST)
    view = await running.view(SECOND)
    assert (view.state, view.reason) == (PodState.WAITING, "AddressUnavailable")
    (due,) = running.manager.pods.queue.scheduled.values()
    assert due - _now() == pytest.approx(UNPLUGGED_HOLD, abs=5)


async def test_it_is_shortened_when_the_node_unplugs_the_ports(
    running: RunningManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    await running.tell_all(NET_A, FIRST, SECOND)
    running.plugged.add(FIRST.uid)
    await running.remove(FIRST)
    _end_shortened_holds_soon(running, monkeypatch)
    running.manager.unplugged(INTERFACES)
    await running.written(SECOND)
    assert len(running.manager.pods.held_ports) == 0


async def test_unplugging_while_the_machine_is_deleted_counts(
    running: RunningManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    await running.tell_all(NET_A, FIRST, SECOND)
    running.plugged.add(FIRST.uid)
    delete = running.store.delete_virtual_machine

    async def delete_while_unplugging(uuid: str, *, hold: float) -> None:
        assert hold == UNPLUGGED_HOLD
        await delete(uuid, hold=hold)
        running.plugged.discard(FIRST.uid)
        running.manager.unplugged(INTERFACES)

    monkeypatch.setattr(running.store, "delete_virtual_machine", delete_while_unplugging)
    _end_shortened_holds_soon(running, monkeypatch)
    await running.remove(FIRST)
    await running.written(SECOND)


async def test_unplugging_ports_of_a_pod_that_lives_frees_nothing(running: RunningManager) -> None:
    """Its sandbox is made anew, which the runtime does without the pod's end."""
    await running.tell_all(NET_A, FIRST)
    running.manager.unplugged([*INTERFACES, "no interface at all"])
    await running.idle()
    assert await running.given() == 2


class TestAPodOfTheSameUid:
    """As its manifest has it: so its interfaces are those that it had, though their addresses are others."""

    async def test_keeps_what_it_has_when_its_old_ports_are_unplugged(self, running: RunningManager) -> None:
        pod = make_pod(networks="net-a")
        await running.tell_all(NET_A, pod)
        running.plugged.add(pod.uid)
        await running.remove(pod)
        await running.apply(pod)
        await self._unplug(running, pod)

    async def test_keeps_it_under_another_name_too(self, running: RunningManager) -> None:
        pod = make_pod("before", networks="net-a")
        renamed = make_pod("after", uid=pod.uid, networks="net-a")
        await running.tell_all(NET_A, pod)
        running.plugged.add(pod.uid)
        await running.send(Applied(renamed), Gone(pod))
        await self._unplug(running, renamed)

    async def _unplug(self, running: RunningManager, pod: Pod) -> None:
        machine = await running.machine(pod)
        assert machine.pod == pod.name
        interfaces = {interface.uuid for interface in machine.interfaces}
        running.manager.unplugged(interfaces)
        await running.idle()
        assert await running.store.address_owners() == interfaces


def _end_shortened_holds_soon(running: RunningManager, monkeypatch: pytest.MonkeyPatch) -> None:
    """Holds that are shortened are over in a moment, too."""
    shorten_holds = running.store.shorten_holds

    async def shorten_to_a_moment(owners: list[str], *, hold: float = 0.05) -> None:
        await shorten_holds(owners, hold=hold)

    monkeypatch.setattr(running.store, "shorten_holds", shorten_to_a_moment)


def _now() -> float:
    return asyncio.get_running_loop().time()
