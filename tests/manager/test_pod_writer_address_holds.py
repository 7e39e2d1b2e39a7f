"""A pod may be deleted before its sandbox: its addresses are held until the node has unplugged the ports."""

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
    """A pod that requests one address, which shows when that can be allocated again."""
    return make_pod(name, networks=json.dumps([{"name": "net-a", "ips": ["10.1.0.7"]}]))


FIRST, SECOND = asking("first"), asking("second")
INTERFACES = [interface_uuid(FIRST.uid, index) for index in range(2)]


@pytest.fixture(autouse=True)
def short_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the hold after an orderly end; the other one stays long."""
    monkeypatch.setattr(pod_writer, "DEFAULT_HOLD", 0.05)


async def test_the_hold_is_short_after_an_orderly_end(running: RunningManager) -> None:
    await running.send_list(NET_A, FIRST, SECOND)
    await running.remove(FIRST)
    await running.wait_for_vm(SECOND)


async def test_the_hold_is_long_while_a_port_is_plugged(running: RunningManager) -> None:
    await running.send_list(NET_A, FIRST, SECOND)
    running.plugged.add(FIRST.uid)
    await running.remove(FIRST)
    view = await running.view(SECOND)
    assert (view.state, view.reason) == (PodState.WAITING, "AddressUnavailable")
    (due,) = running.manager.pods.queue.scheduled.values()
    assert due - _now() == pytest.approx(UNPLUGGED_HOLD, abs=5)


async def test_the_hold_is_shortened_when_the_node_unplugs_the_ports(
    running: RunningManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    await running.send_list(NET_A, FIRST, SECOND)
    running.plugged.add(FIRST.uid)
    await running.remove(FIRST)
    _end_shortened_holds_soon(running, monkeypatch)
    running.manager.unplugged("node-1", INTERFACES)
    await running.wait_for_vm(SECOND)
    assert len(running.manager.pods.held_ports) == 0


async def test_unplugging_during_the_deletion_shortens_the_hold(
    running: RunningManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    await running.send_list(NET_A, FIRST, SECOND)
    running.plugged.add(FIRST.uid)
    delete = running.store.delete_virtual_machine

    async def delete_while_unplugging(uuid: str, *, hold: float) -> None:
        assert hold == UNPLUGGED_HOLD
        await delete(uuid, hold=hold)
        running.plugged.discard(FIRST.uid)
        running.manager.unplugged("node-1", INTERFACES)

    monkeypatch.setattr(running.store, "delete_virtual_machine", delete_while_unplugging)
    _end_shortened_holds_soon(running, monkeypatch)
    await running.remove(FIRST)
    await running.wait_for_vm(SECOND)


async def test_unplugging_ports_of_a_running_pod_releases_nothing(running: RunningManager) -> None:
    """The runtime may recreate a sandbox without the pod ending."""
    await running.send_list(NET_A, FIRST)
    running.manager.unplugged("node-1", [*INTERFACES, "no interface at all"])
    await running.idle()
    assert await running.allocated_count() == 2


class TestAPodOfTheSameUid:
    """A uid from a manifest: the interfaces have the former uuids, but other addresses."""

    async def test_keeps_its_new_addresses_when_its_old_ports_are_unplugged(self, running: RunningManager) -> None:
        pod = make_pod(networks="net-a")
        await running.send_list(NET_A, pod)
        running.plugged.add(pod.uid)
        await running.remove(pod)
        await running.apply(pod)
        await self._unplug(running, pod)

    async def test_keeps_them_under_another_name_too(self, running: RunningManager) -> None:
        pod = make_pod("before", networks="net-a")
        renamed = make_pod("after", uid=pod.uid, networks="net-a")
        await running.send_list(NET_A, pod)
        running.plugged.add(pod.uid)
        await running.send(Applied(renamed), Gone(pod))
        await self._unplug(running, renamed)

    async def _unplug(self, running: RunningManager, pod: Pod) -> None:
        vm = await running.vm(pod)
        assert vm.pod == pod.name
        interfaces = {interface.uuid for interface in vm.interfaces}
        running.manager.unplugged("node-1", interfaces)
        await running.idle()
        assert await running.store.address_owners() == interfaces


def _end_shortened_holds_soon(running: RunningManager, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes shortened holds end at once."""
    shorten_holds = running.store.shorten_holds

    async def shorten_to_a_moment(owners: list[str], *, hold: float = 0.05) -> None:
        await shorten_holds(owners, hold=hold)

    monkeypatch.setattr(running.store, "shorten_holds", shorten_to_a_moment)


def _now() -> float:
    return asyncio.get_running_loop().time()
