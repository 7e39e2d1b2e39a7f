"""What a cluster shows of a static pod is a mirror: when it goes its pod runs on, and what was given to that stays
until the mirror is back, or it is known that the sandbox has ended, or it was waited for long enough."""

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
from tests.support.clock import FakeClock
from tests.support.pods import make_nad, make_pod, uid_of
from tests.support.running_manager import RunningManager

NET_A = make_nad("net-a")


def static(config_hash: str = "cafe", *, name: str = "proxy-node-1") -> Pod:
    uid = static_pod_uuid("blue", name, config_hash)
    return make_pod(name, networks="net-a", uid=uid, config_hash=config_hash)


POD = static()
INTERFACES = [interface_uuid(POD.uid, index) for index in range(2)]


class Holds:
    """How long what was deleted is held back, in order."""

    def __init__(self, running: RunningManager, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds: list[float] = []
        self._delete = running.store.delete_virtual_machine
        monkeypatch.setattr(running.store, "delete_virtual_machine", self._note)

    async def _note(self, uuid: str, *, hold: float) -> None:
        self.seconds.append(hold)
        await self._delete(uuid, hold=hold)


@pytest.fixture
async def holds(running: RunningManager, monkeypatch: pytest.MonkeyPatch) -> Holds:
    """With a static pod that has its list, whose ports are plugged."""
    await running.tell_all(NET_A, POD)
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


def be_patient(monkeypatch: pytest.MonkeyPatch, *, patience: float = 300.0, lag: float = 0.0) -> None:
    monkeypatch.setattr(static_pods, "MIRROR_TIMEOUT", patience)
    monkeypatch.setattr(static_pods, "_REPORT_DELAY", lag)


async def test_a_mirror_that_comes_back_finds_all_as_it_was(running: RunningManager, holds: Holds) -> None:
    before = await running.machine(POD)
    for _ in range(3):
        await running.remove(POD)
        assert await running.machine(POD) == before
        await running.apply(POD)
        assert await running.machine(POD) == before
    assert holds.seconds == []
    (assigned,) = await running.store.events(namespace=POD.namespace, name=POD.name)
    assert (assigned.uid, assigned.count) == (POD.config_hash, 1)


async def test_while_it_is_away_its_addresses_are_nobody_elses(running: RunningManager, holds: Holds) -> None:
    taken = (await running.machine(POD)).interfaces[1].addresses[0].address
    await running.remove(POD)
    other = make_pod("other", networks=f'[{{"name": "net-a", "ips": ["{taken}"]}}]')
    await running.apply(other)
    assert (await running.view(other)).reason == "AddressUnavailable"


async def test_one_that_does_not_come_back_is_freed_like_a_pod_of_which_nothing_is_known(
    running: RunningManager, holds: Holds, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_patient(monkeypatch, patience=0.05)
    await running.remove(POD)
    await running.machine_gone(POD.name)
    assert holds.seconds == [UNPLUGGED_HOLD]


async def test_a_store_that_fails_when_the_wait_is_over_does_not_begin_it_anew(
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
    await running.machine_gone(POD.name)  # a new wait would take as long again on the clock, which stands still
    assert next(failures, None) is None


async def test_one_whose_sandbox_is_known_to_have_ended_is_not_waited_for(
    running: RunningManager, holds: Holds
) -> None:
    await running.remove(msgspec.structs.replace(POD, gone=True))
    await running.machine_gone(POD.name)
    assert holds.seconds == [DEFAULT_HOLD]


async def test_nor_is_one_whose_node_says_that_its_ports_are_unplugged(
    running: RunningManager, holds: Holds, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_patient(monkeypatch)
    await running.remove(POD)
    running.manager.unplugged(INTERFACES)
    await running.machine_gone(POD.name)
    assert holds.seconds == [DEFAULT_HOLD]


async def test_what_the_node_says_at_once_may_be_of_an_earlier_sandbox(running: RunningManager, holds: Holds) -> None:
    await running.remove(POD)
    running.manager.unplugged(INTERFACES)
    await running.idle()
    assert holds.seconds == []
    await running.apply(POD)
    await running.machine(POD)


async def test_what_the_node_said_already_before_may_be_so_as_well_however_often_it_is_told(
    running: RunningManager, holds: Holds, clock: FakeClock
) -> None:
    """An agent that cannot reach the server takes nothing back."""
    running.manager.unplugged(INTERFACES)
    clock.advance(5)
    await running.remove(POD)
    await told_for(60, running, clock)
    assert holds.seconds == []
    await running.apply(POD)
    await running.machine(POD)


async def test_what_the_node_says_first_after_the_end_of_the_mirror_counts_when_it_is_old_enough(
    running: RunningManager, holds: Holds, clock: FakeClock
) -> None:
    await running.remove(POD)
    clock.advance(10)
    await told_for(10, running, clock)
    assert holds.seconds == []
    await told_for(10, running, clock)
    await running.machine_gone(POD.name)
    assert holds.seconds == [DEFAULT_HOLD]


async def test_what_the_node_took_back_and_says_again_is_new(
    running: RunningManager, holds: Holds, clock: FakeClock
) -> None:
    running.manager.unplugged(INTERFACES)
    clock.advance(5)
    await running.remove(POD)
    clock.advance(31)
    await told_for(0, running, clock)
    await running.machine_gone(POD.name)
    assert holds.seconds == [DEFAULT_HOLD]


def test_standing_reports_are_repeated_within_the_report_window() -> None:
    assert REPEAT_INTERVAL * 2 < static_pods.REPORT_WINDOW


async def told_for(seconds: int, running: RunningManager, clock: FakeClock) -> None:
    """The node's report stands, and is told again every ten seconds."""
    running.manager.unplugged(INTERFACES)
    for _ in range(seconds // 10):
        clock.advance(10)
        running.manager.unplugged(INTERFACES)
    await running.idle()


async def test_what_the_node_says_of_a_pod_whose_mirror_is_there_frees_nothing(
    running: RunningManager, holds: Holds, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_patient(monkeypatch)
    await running.remove(POD)
    await running.apply(POD)
    running.manager.unplugged(INTERFACES)
    await running.remove(POD)
    assert holds.seconds == []


async def test_a_pod_that_ended_and_was_started_again_is_waited_for_again(
    running: RunningManager, holds: Holds
) -> None:
    """As after a restart of its node: its identity is of its file, and has not changed."""
    await running.apply(msgspec.structs.replace(POD, gone=True))
    await running.apply(POD)
    again = await running.machine(POD)
    await running.remove(POD)
    assert await running.machine(POD) == again


async def test_another_file_under_the_same_name_is_another_pod(running: RunningManager, holds: Holds) -> None:
    edited = static("beef")
    await running.remove(POD)
    await running.apply(edited)
    await running.written(edited)
    assert holds.seconds == [UNPLUGGED_HOLD]
    assert [machine.uuid for machine in await running.store.virtual_machines()] == [edited.uid]


async def test_a_list_without_the_mirror_waits_for_it_too(running: RunningManager, holds: Holds) -> None:
    await running.remove(POD)
    await running.send(Listed())
    assert holds.seconds == []


async def test_pods_that_only_bear_a_hash_are_not_waited_for(running: RunningManager) -> None:
    """Anybody can write an annotation: a successor of the same name is another pod."""
    pod = make_pod("web-0", config_hash="cafe", uid=uid_of("blue", "web-0"))
    await running.tell_all(pod)
    running.plugged.add(pod.uid)
    await running.remove(pod)
    await running.machine_gone("web-0")


async def test_nobody_is_waited_for_when_the_manager_ends(running: RunningManager, holds: Holds) -> None:
    await running.remove(POD)
    async with asyncio.timeout(1):
        await running.manager.pods.close()
    assert [machine.uuid for machine in await running.store.virtual_machines()] == [POD.uid]
