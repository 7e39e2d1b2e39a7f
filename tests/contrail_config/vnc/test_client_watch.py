"""VncClient: watches, and the server-sent events of which they consist."""

from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrail_config.vnc.client import VncClient
from contrail_config.vnc.errors import VncError, VncUnavailableError
from contrail_config.vnc.server_sent_events import ServerEvent, read_events
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import annotations

FIELDS = {"virtual-machine": ["annotations"], "instance-ip": ["annotations"]}


async def test_a_watch_begins_with_the_state_and_goes_on_with_changes(vnc: VncClient) -> None:
    first = await vnc.create("virtual-machine", {"fq_name": ["a"], "annotations": annotations(x="1")})
    async with vnc.watch(FIELDS) as events:
        state = await anext(events)
        assert (state.event, state.kind, [item["uuid"] for item in state.objects]) == (
            "init",
            "virtual-machine",
            [first],
        )
        assert await anext(events) == ServerEvent("init", "instance-ip", [])
        await vnc.delete("virtual-machine", first)
        assert await anext(events) == ServerEvent("delete", "virtual-machine", [{"uuid": first}])


async def test_keep_alives_are_left_out(vnc: VncClient, double: ContrailApi) -> None:
    double.watch_settings.keepalive_interval = 0.01
    async with vnc.watch({"virtual-machine": ["annotations"]}) as events:
        await anext(events)
        double.faults.latency = 0.05
        await vnc.create("virtual-machine", {"fq_name": ["a"]})
        assert (await anext(events)).event == "create"


async def test_a_stop_event_is_an_error(vnc: VncClient, double: ContrailApi) -> None:
    async with vnc.watch({"virtual-machine": ["annotations"]}) as events:
        await anext(events)
        double.stop_watches("the read failed")
        with pytest.raises(VncUnavailableError, match=r"the server ended the watch: .*the read failed"):
            await anext(events)


async def test_a_watch_without_a_sign_is_lost(
    vnc: VncClient, double: ContrailApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrail_config.vnc.client.WATCH_IDLE", 0.05)
    async with vnc.watch({"virtual-machine": ["annotations"]}) as events:
        await anext(events)
        with pytest.raises(VncUnavailableError, match="timed out"):
            await anext(events)


async def test_a_cut_watch_ends_or_fails(vnc: VncClient, double: ContrailApi) -> None:
    async with vnc.watch({"virtual-machine": ["annotations"]}) as events:
        await anext(events)
        double.cut_watches()
        with pytest.raises((VncUnavailableError, StopAsyncIteration)):
            await anext(events)


async def chunks_of(data: bytes, cuts: list[int]) -> AsyncIterator[bytes]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, end in pairwise(edges):
        yield data[start:end]


STREAM = (
    b'event: init\ndata: {"virtual-machines": [{"virtual-machine": {"uuid": "a"}}]}\n\n'
    b':\n\nevent: create\ndata: {"virtual-machine": {"uuid": "b\\n\\n"}}\n\n:\n\n'
    b'event: delete\ndata: {"virtual-machine": {"uuid": "a"}}\n\n'
)
EVENTS = [
    ServerEvent("init", "virtual-machine", [{"uuid": "a"}]),
    ServerEvent("create", "virtual-machine", [{"uuid": "b\n\n"}]),
    ServerEvent("delete", "virtual-machine", [{"uuid": "a"}]),
]


@given(st.lists(st.integers(min_value=0, max_value=1000), max_size=40))
async def test_events_are_the_same_however_the_stream_is_cut(cuts: list[int]) -> None:
    assert [event async for event in read_events(chunks_of(STREAM, cuts), where="x")] == EVENTS


@pytest.mark.parametrize("data", ["[]", "{}", "nonsense", '{"virtual-machines": [{}]}'])
async def test_a_malformed_event_is_an_error(data: str) -> None:
    frame = f"event: init\ndata: {data}\n\n".encode()
    with pytest.raises(VncError, match="GET /watch: malformed event 'init'"):
        [event async for event in read_events(chunks_of(frame, []), where="GET /watch")]
