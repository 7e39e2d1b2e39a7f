"""Static pods: the assignment is kept while the mirror pod is absent, until it returns, the sandbox is known to be
removed, or the timeout ends."""

import asyncio

import msgspec
import pytest

from contrail_config.errors import StoreUnavailableError
from contrail_config.objects import interface_uuid, static_pod_uuid
from contrail_config.store import DEFAULT_HOLD, UNPLUGGED_HOLD
from manager.controller import static_pods
from manager.kubernetes.node_report_watch import REPEAT_INTERVAL
from manager.source import Listed, Pod
from tests.manager.conftest import Start
from tests.support.fake_clock import FakeClock
from tests.support.pods import make_nad, make_pod, uid_of
from tests.support.running_manager import RunningManager

NET_A = make_nad("net-a")


def static(config_hash: str = "cafe", *, name: str = "proxy-node-1") -> Pod:
    uid = static_pod_uuid("blue", name, config_hash)
    return make_pod(name, networks="net-a", uid=uid, config_hash=config_hash)


POD = static()
INTERFACES = [interface_uuid(POD.uid, index) for index in range(2)]


class Holds:
    """Records the holds of deleted virtual machines, in order."""

    def __init__(self, running: RunningManager, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds: list[float] = []
        self._delete = running.store.delete_virtual_machine
        monkeypatch.setattr(running.store, "delete_virtual_machine", self._note)

    async def _note(self, uuid: str, *, hold: float) -> None:
        self.seconds.append(hold)
        await self._delete(uuid, hold=hold)


@pytest.fixture
async def holds(running: RunningManager, monkeypatch: pytest.MonkeyPatch) -> Holds:
    """With an assigned static pod whose ports are plugged."""
    await running.send_list(NET_A, POD)
    running.plugged.add(POD.uid)
    return Holds(running, monkeypatch)


@pytest.fixture
def clock() -> FakeClock:
    """The manager's clock, for tests that request it."""
    return FakeClock(1000.0)


@pytest.fixture
async def running(start: Start, request: pytest.FixtureRequest) -> RunningManager:
    if "clock" in request.fixturenames:
        return await start(clock=request.getfixturevalue("clock"))
    return await start()


def set_timeouts(monkeypatch: pytest.MonkeyPatch, *, mirror: float = 300.0, report: float = 0.0) -> None:
    monkeypatch.setattr(static_pods, "MIRROR_TIMEOUT", mirror)
    monkeypatch.setattr(static_pods, "_REPORT_DELAY", report)


async def test_a_recreated_mirror_finds_its_assignment_unchanged(running: RunningManager, holds: Holds) -> None:
    before = await running.vm(POD)
    for _ in range(3):
        await running.remove(POD)
        assert await running.vm(POD) == before
        await running.apply(POD)
        assert await running.vm(POD) == before
    assert holds.seconds == []
    (assigned,) = await running.store.events(namespace=POD.namespace, name=POD.name)
    assert (assigned.uid, assigned.count) == (POD.config_hash, 1)


async def test_the_addresses_stay_allocated_while_the_mirror_is_absent(running: RunningManager, holds: Holds) -> None:
    taken = (await running.vm(POD)).interfaces[1].addresses[0].address
    await running.remove(POD)
    other = make_pod("other", networks=f'[{{"name": "net-a", "ips": ["{taken}"]}}]')
    await running.apply(other)
    assert (await running.view(other)).reason == "AddressUnavailable"


async def test_a_mirror_that_does_not_return_is_released_with_the_long_hold(
    running: RunningManager, holds: Holds, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_timeouts(monkeypatch, mirror=0.05)
    await running.remove(POD)
    await running.wait_until_deleted(POD.name)
    assert holds.seconds == [UNPLUGGED_HOLD]


async def test_a_store_failure_at_the_timeout_does_not_restart_the_wait(
    running: RunningManager, holds: Holds, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = iter([StoreUnavailableError("not now")])
    delete = running.store.delete_virtual_machine

    async def fail_once(uuid: str, *, hold: float) -> None:
        for failure in failures:
            raise failure
        await delete(uuid, hold=hold)

    monkeypatch.setattr(running.store, "delete_virtual_machine", fail_once)
    await running.remove(POD)
    clock.advance(static_pods.MIRROR_TIMEOUT)
    running.manager.pods.queue.add(POD.key)
    await running.wait_until_deleted(POD.name)  # a new wait would take as long again on the clock, which stands still
    assert next(failures, None) is None


async def test_a_pod_whose_sandbox_is_known_to_be_removed_is_released_at_once(
    running: RunningManager, holds: Holds
) -> None:
    await running.remove(msgspec.structs.replace(POD, gone=True))
    await running.wait_until_deleted(POD.name)
    assert holds.seconds == [DEFAULT_HOLD]


async def test_a_pod_whose_ports_are_reported_unplugged_is_released_at_once(
    running: RunningManager, holds: Holds, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_timeouts(monkeypatch)
    await running.remove(POD)
    running.manager.unplugged("node-1", INTERFACES)
    await running.wait_until_deleted(POD.name)
    assert holds.seconds == [DEFAULT_HOLD]


async def test_the_report_of_another_node_does_not_count(
    running: RunningManager, holds: Holds, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_timeouts(monkeypatch)
    await running.remove(POD)
    running.manager.unplugged("node-2", INTERFACES)
    await running.idle()
    assert holds.seconds == []
    running.manager.unplugged("node-1", INTERFACES)
    await running.wait_until_deleted(POD.name)


async def test_a_report_right_after_the_deletion_may_be_of_an_earlier_sandbox(
    running: RunningManager, holds: Holds
) -> None:
    await running.remove(POD)
    running.manager.unplugged("node-1", INTERFACES)
    await running.idle()
    assert holds.seconds == []
    await running.apply(POD)
    await running.vm(POD)


async def test_a_report_that_began_before_the_deletion_never_counts(
    running: RunningManager, holds: Holds, clock: FakeClock
) -> None:
    """An agent that cannot reach the server does not withdraw its report."""
    running.manager.unplugged("node-1", INTERFACES)
    clock.advance(5)
    await running.remove(POD)
    await report_for(60, running, clock)
    assert holds.seconds == []
    await running.apply(POD)
    await running.vm(POD)


async def test_a_report_that_began_after_the_deletion_counts_after_a_delay(
    running: RunningManager, holds: Holds, clock: FakeClock
) -> None:
    await running.remove(POD)
    clock.advance(10)
    await report_for(10, running, clock)
    assert holds.seconds == []
    await report_for(10, running, clock)
    await running.wait_until_deleted(POD.name)
    assert holds.seconds == [DEFAULT_HOLD]


async def test_a_withdrawn_and_repeated_report_is_a_new_one(
    running: RunningManager, holds: Holds, clock: FakeClock
) -> None:
    running.manager.unplugged("node-1", INTERFACES)
    clock.advance(5)
    await running.remove(POD)
    clock.advance(31)
    await report_for(0, running, clock)
    await running.wait_until_deleted(POD.name)
    assert holds.seconds == [DEFAULT_HOLD]


def test_standing_reports_are_repeated_within_the_report_window() -> None:
    assert REPEAT_INTERVAL * 2 < static_pods.REPORT_WINDOW


async def report_for(seconds: int, running: RunningManager, clock: FakeClock) -> None:
    """Repeats the node's report every ten seconds."""
    running.manager.unplugged("node-1", INTERFACES)
    for _ in range(seconds // 10):
        clock.advance(10)
        running.manager.unplugged("node-1", INTERFACES)
    await running.idle()


async def test_a_report_on_a_pod_with_a_mirror_releases_nothing(
    running: RunningManager, holds: Holds, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_timeouts(monkeypatch)
    await running.remove(POD)
    await running.apply(POD)
    running.manager.unplugged("node-1", INTERFACES)
    await running.remove(POD)
    assert holds.seconds == []


async def test_a_restarted_pod_is_waited_for_again(running: RunningManager, holds: Holds) -> None:
    """As after a restart of its node: its identity derives from its manifest, and is unchanged."""
    await running.apply(msgspec.structs.replace(POD, gone=True))
    await running.apply(POD)
    again = await running.vm(POD)
    await running.remove(POD)
    assert await running.vm(POD) == again


async def test_an_edited_manifest_of_the_same_name_is_another_pod(running: RunningManager, holds: Holds) -> None:
    edited = static("beef")
    await running.remove(POD)
    await running.apply(edited)
    await running.wait_for_vm(edited)
    assert holds.seconds == [UNPLUGGED_HOLD]
    assert [vm.uuid for vm in await running.store.virtual_machines()] == [edited.uid]


async def test_a_mirror_missing_from_a_list_is_waited_for_too(running: RunningManager, holds: Holds) -> None:
    await running.remove(POD)
    await running.send(Listed())
    assert holds.seconds == []


async def test_pods_that_only_have_a_hash_annotation_are_not_waited_for(running: RunningManager) -> None:
    """Anybody can set that annotation: a successor of the same name is another pod."""
    pod = make_pod("web-0", config_hash="cafe", uid=uid_of("blue", "web-0"))
    await running.send_list(pod)
    running.plugged.add(pod.uid)
    await running.remove(pod)
    await running.wait_until_deleted("web-0")


async def test_shutdown_does_not_wait_for_mirrors(running: RunningManager, holds: Holds) -> None:
    await running.remove(POD)
    async with asyncio.timeout(1):
        await running.manager.pods.close()
    assert [vm.uuid for vm in await running.store.virtual_machines()] == [POD.uid]
