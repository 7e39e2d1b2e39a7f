"""Follower of VncStore: watches that end or lose events, and servers without one."""

import asyncio
from typing import ClassVar

import pytest

from contrail_config.kube.backoff import Backoff
from contrail_config.store import Change, ChangeType
from contrail_config.vnc import follower
from contrail_config.vnc.follower import Intervals
from tests.contrail_config.vnc.store.conftest import OpenVnc
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import unique
from tests.support.recorded_reflector import eventually
from tests.support.virtual_machines import make_virtual_machine


@pytest.mark.parametrize("fault", ["cut", "stop", "dropped"])
async def test_a_watch_that_ends_is_resumed_with_what_it_missed(
    open_vnc: OpenVnc, double: ContrailApi, fault: str
) -> None:
    reader, writer = await open_vnc(), await open_vnc()
    machine = make_virtual_machine(unique("p"))
    async with asyncio.timeout(20), reader.watch_virtual_machines() as changes:
        assert (await anext(changes)).type is ChangeType.SYNCED
        double.watch_settings.dropped = 2 * 10 if fault == "dropped" else 0
        if fault == "stop":
            double.stop_watches("the read failed")
        elif fault == "cut":
            double.cut_watches()
        await writer.put_virtual_machine(machine)
        if fault == "dropped":
            double.watch_settings.dropped = 0
            double.cut_watches()
        assert await anext(changes) == Change(ChangeType.ADDED, machine)


class RecordedBackoff(Backoff):
    """Notes how many failures in a row it counted, and waits for nothing."""

    seen: ClassVar[list[int]] = []

    def next_pause(self, *, retry_after: float = 0.0) -> float:
        super().next_pause(retry_after=retry_after)
        self.seen.append(self._failures)
        return 0.0


@pytest.mark.parametrize(("lasting", "failures"), [(3600.0, [1, 2, 3]), (0.0, [1, 1, 1])])
async def test_watches_that_soon_end_are_opened_less_and_less_often(
    open_vnc: OpenVnc, double: ContrailApi, monkeypatch: pytest.MonkeyPatch, lasting: float, failures: list[int]
) -> None:
    """The server keeps the queue of each until it is restarted, and reads everything for the next one."""
    monkeypatch.setattr(follower, "Backoff", RecordedBackoff)
    monkeypatch.setattr(follower, "LASTING", lasting)
    monkeypatch.setattr(RecordedBackoff, "seen", [])
    reader = await open_vnc()
    for count in range(1, len(failures) + 1):
        await eventually(lambda: not reader.problems() and len(double.watches) == 1)
        double.stop_watches("the read failed")
        await eventually(lambda count=count: len(RecordedBackoff.seen) == count)
    assert RecordedBackoff.seen == failures


async def test_an_event_that_was_lost_is_found_by_the_comparison(open_vnc: OpenVnc, double: ContrailApi) -> None:
    reader, writer = await open_vnc(intervals=Intervals(comparison=0.05)), await open_vnc()
    machine = make_virtual_machine(unique("p"))
    async with asyncio.timeout(20), reader.watch_virtual_machines() as changes:
        assert (await anext(changes)).type is ChangeType.SYNCED
        double.watch_settings.dropped = 1000
        await writer.put_virtual_machine(machine)
        assert await anext(changes) == Change(ChangeType.ADDED, machine)
        await writer.delete_virtual_machine(machine.uuid)
        assert await anext(changes) == Change(ChangeType.DELETED, machine)


async def test_a_server_without_watch_is_polled(open_vnc: OpenVnc, double: ContrailApi) -> None:
    double.has_watch = False
    reader, writer = await open_vnc(intervals=Intervals(poll=0.05)), await open_vnc()
    machine = make_virtual_machine(unique("p"))
    async with asyncio.timeout(20), reader.watch_virtual_machines() as changes:
        assert (await anext(changes)).type is ChangeType.SYNCED
        await writer.put_virtual_machine(machine)
        assert await anext(changes) == Change(ChangeType.ADDED, machine)
    assert not any("/watch" in request for request in double.requests)


MALFORMED_EVENTS = [
    'event: update\ndata: {"virtual-machine": {}}\n\n',
    'event: update\ndata: {"virtual-machine": null}\n\n',
    'event: init\ndata: {"virtual-machines": [{"virtual-machine": []}]}\n\n',
]


@pytest.mark.parametrize(
    ("request_line", "answer"),
    [("GET /", "{}"), ("GET /", "[]"), ("GET /", ""), *(("GET /watch", event) for event in MALFORMED_EVENTS)],
    ids=["no key", "no object", "nothing", "event without uuid", "event without object", "list of other things"],
)
async def test_an_unexpected_answer_is_a_problem_until_the_server_answers_well(
    open_vnc: OpenVnc, double: ContrailApi, request_line: str, answer: str
) -> None:
    reader, writer = await open_vnc(), await open_vnc()
    machine = make_virtual_machine(unique("p"))
    double.faults.reject(200, answer, matches=request_line, times=1000)
    double.cut_watches()
    await eventually(lambda: any("unexpected answer" in problem for problem in reader.problems()))
    await writer.put_virtual_machine(machine)
    double.faults.rejections.clear()
    await eventually(lambda: not reader.problems())
    assert await reader.virtual_machines() == [machine]


async def test_an_unexpected_answer_to_a_comparison_does_not_end_comparisons(
    open_vnc: OpenVnc, double: ContrailApi
) -> None:
    reader, writer = await open_vnc(intervals=Intervals(comparison=0.05)), await open_vnc()
    machine = make_virtual_machine(unique("p"))
    double.faults.reject(200, "{}", matches="POST /list-bulk-collection", times=2)
    await eventually(lambda: not double.faults.rejections)
    async with asyncio.timeout(20), reader.watch_virtual_machines() as changes:
        assert (await anext(changes)).type is ChangeType.SYNCED
        double.watch_settings.dropped = 1000
        await writer.put_virtual_machine(machine)
        assert await anext(changes) == Change(ChangeType.ADDED, machine)


async def test_an_unexpected_answer_to_a_poll_is_a_problem_until_the_server_answers_well(
    open_vnc: OpenVnc, double: ContrailApi
) -> None:
    double.has_watch = False
    reader = await open_vnc(intervals=Intervals(poll=0.05))
    double.faults.reject(200, '{"virtual-networks": null, "marker": null}', matches="list-bulk-collection", times=1000)
    await eventually(lambda: any("unexpected answer" in problem for problem in reader.problems()))
    double.faults.rejections.clear()
    await eventually(lambda: not reader.problems())
