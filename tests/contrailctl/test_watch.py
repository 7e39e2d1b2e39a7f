"""`contrailctl get --watch`, as a process, of a scripted manager and of an embedded node that is restarted."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec
import pytest
from aiohttp import web

from manager.api.types import PodState
from tests.support import api_views
from tests.support.contrailctl_command import Run
from tests.support.embedded_process import EmbeddedProcess
from tests.support.fake_apis import served
from tests.support.free_port import free_port
from tests.support.manifests import nad, pod, write

COMMAND = Path(sys.executable).parent / "contrailctl"
RESET, SYNCED = {"type": "RESET"}, {"type": "SYNCED"}
DEADLINE = 60.0


@contextmanager
def started(url: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Runs the command, and kills it at the end."""
    command = [str(COMMAND), "--manager", url, "get", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


async def line_of(stream: IO[str] | None) -> str:
    assert stream is not None
    async with asyncio.timeout(DEADLINE):
        return await asyncio.to_thread(stream.readline)


async def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Exit status and the rest of standard error."""
    async with asyncio.timeout(DEADLINE):
        status = await asyncio.to_thread(process.wait)
    assert process.stderr is not None
    return status, process.stderr.read()


def applied(kind: str, item: Any, message: str = "APPLIED") -> dict[str, Any]:
    return {"type": message, "kind": kind, "object": msgspec.to_builtins(item)}


class ScriptedWatch:
    """Serves one connection after the other, each with the messages of one script; the last one stays open."""

    def __init__(self, *scripts: list[dict[str, Any]]) -> None:
        self._scripts = list(scripts)
        self.asked: list[tuple[str, str]] = []
        self.more: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.query_string, request.headers.get("Last-Event-ID", "")))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"retry: 1000\n\n")
        number = len(self.asked)
        for message in self._scripts.pop(0):
            await self._send(response, message, number)
        while not self._scripts:
            await self._send(response, await self.more.get(), number)
        return response

    async def _send(self, response: web.StreamResponse, message: dict[str, Any], number: int) -> None:
        event_id = "" if message["type"] in ("RESET", "CLOSED") else f"id: connection-{number}\n"
        await response.write(f"{event_id}data: {json.dumps(message)}\n\n".encode())


@asynccontextmanager
async def watched(script: ScriptedWatch) -> AsyncIterator[str]:
    async with served([web.get("/v1/watch", script.handle)]) as url:
        yield url


PODS = [applied("pods", view) for view in api_views.PODS]
ROUTER = api_views.PODS[0]


async def test_the_list_is_followed_by_a_row_for_each_change(contrailctl: Run, manager: str) -> None:
    table = (await contrailctl("--manager", manager, "get", "pods")).out.splitlines()
    script = ScriptedWatch([RESET, *PODS, SYNCED])
    async with watched(script) as url:
        with started(url, "pods", "-w") as process:
            assert [(await line_of(process.stdout)).rstrip("\n") for _ in table] == table
            waits = msgspec.structs.replace(ROUTER, state=PodState.REFUSED, reason="AnnotationInvalid")
            for message in (applied("pods", ROUTER), applied("pods", waits), applied("pods", waits, "DELETED")):
                script.more.put_nowait(message)
            changed = await line_of(process.stdout)
            assert changed.split()[1:3] == [ROUTER.name, "Refused"]
            assert changed.index("Refused") == table[0].index("STATE")
            assert await line_of(process.stdout) == changed  # deleted: its last state
    assert script.asked == [("kind=pods", "")]


async def test_json_is_one_document_per_line_and_filters_are_part_of_the_request() -> None:
    script = ScriptedWatch([RESET, PODS[0], SYNCED, applied("pods", ROUTER, "DELETED")])
    async with watched(script) as url:
        with started(url, "pods", "router", "-n", "shop", "--watch", "-o", "json", "--output-watch-events") as process:
            lines = [json.loads(await line_of(process.stdout)) for _ in range(2)]
        with started(url, "pods", "-w", "-o", "yaml") as process:
            pass
    assert lines == [{"type": kind, "object": PODS[0]["object"]} for kind in ("ADDED", "DELETED")]
    assert script.asked[0] == ("kind=pods&namespace=shop&name=router", "")


async def test_the_type_of_a_change_is_a_column_if_asked_for() -> None:
    script = ScriptedWatch([RESET, PODS[0], SYNCED])
    async with watched(script) as url:
        with started(url, "pods", "-w", "--output-watch-events") as process:
            assert [(await line_of(process.stdout)).split()[0] for _ in range(2)] == ["EVENT", "ADDED"]


async def test_events_are_listed_oldest_first_and_a_repeated_one_is_a_row_of_its_own() -> None:
    events = sorted(api_views.events(), key=lambda event: event.last_seen)
    script = ScriptedWatch([RESET, *(applied("events", each) for each in reversed(events)), SYNCED])
    async with watched(script) as url:
        with started(url, "events", "-w", "-o", "json") as process:
            assert [json.loads(await line_of(process.stdout))["lastSeen"] for _ in events] == [
                each.last_seen for each in events
            ]
            again = msgspec.structs.replace(events[0], count=events[0].count + 1)
            script.more.put_nowait(applied("events", again))
            assert json.loads(await line_of(process.stdout))["count"] == again.count


async def test_after_a_broken_connection_only_differences_are_printed() -> None:
    gone, kept, new = PODS[0], PODS[1], PODS[2]
    closed = {"type": "CLOSED", "message": "a stream ends"}
    script = ScriptedWatch([RESET, gone, kept, SYNCED], [closed], [RESET, kept, new, SYNCED])
    async with watched(script) as url:
        with started(url, "pods", "-w", "-o", "json", "--output-watch-events") as process:
            found = [json.loads(await line_of(process.stdout)) for _ in range(4)]
    assert [(each["type"], each["object"]["name"]) for each in found] == [
        *(("ADDED", each["object"]["name"]) for each in (gone, kept)),
        ("DELETED", gone["object"]["name"]),
        ("ADDED", new["object"]["name"]),
    ]
    assert [last_id for _, last_id in script.asked] == ["", "connection-1", "connection-1"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_an_interrupt_ends_it_with_status_130_and_no_message(number: int) -> None:
    async with watched(ScriptedWatch([RESET, PODS[0], SYNCED])) as url:
        with started(url, "pods", "-w") as process:
            await line_of(process.stdout)
            process.send_signal(number)
            assert await ended(process) == (130, "")


async def test_a_reader_that_closes_the_pipe_ends_it_without_an_error() -> None:
    script = ScriptedWatch([RESET, PODS[0], SYNCED])
    async with watched(script) as url:
        with started(url, "pods", "-w") as process:
            assert process.stdout is not None
            await line_of(process.stdout)
            await line_of(process.stdout)
            process.stdout.close()
            script.more.put_nowait(PODS[1])
            assert await ended(process) == (0, "")


async def test_a_first_connection_that_fails_is_an_error(contrailctl: Run, unreachable_url: str) -> None:
    failed = await contrailctl("--manager", unreachable_url, "get", "pods", "-w")
    assert (failed.status, failed.out) == (1, "")
    assert failed.err == f"contrailctl: {unreachable_url}: Connection refused\n"

    async def refuse(_request: web.Request) -> web.Response:
        return web.json_response({"error": "too many watches: limit is 64; retry later"}, status=503)

    async with served([web.get("/v1/watch", refuse)]) as url:
        failed = await contrailctl("--manager", url, "get", "pods", "-w")
    assert failed.err == f"contrailctl: {url}/v1/watch: too many watches: limit is 64; retry later (status 503)\n"


@pytest.mark.parametrize(
    ("script", "arguments", "message"),
    [
        ([RESET, SYNCED], ["router", "-n", "shop"], "pod shop/router not found"),
        (
            [RESET, {"type": "APPLIED", "kind": "pods", "object": {}}],
            [],
            "invalid pods, or a manager of another version",
        ),
        ([{"type": "OTHER"}], [], "invalid message, or a manager of another version"),
    ],
)
async def test_what_cannot_be_watched_is_an_error(
    contrailctl: Run, script: list[dict[str, Any]], arguments: list[str], message: str
) -> None:
    async with watched(ScriptedWatch(script)) as url:
        failed = await contrailctl("--manager", url, "get", "pods", "-w", *arguments)
    assert failed.status == 1
    assert message in failed.err


async def test_types_of_changes_are_an_option_of_watches_only(contrailctl: Run, manager: str) -> None:
    failed = await contrailctl("--manager", manager, "get", "pods", "--output-watch-events")
    assert (failed.status, failed.err) == (2, "contrailctl: --output-watch-events: only with --watch\n")


async def test_it_goes_on_when_an_embedded_node_is_restarted(tmp_path: Path) -> None:
    node = EmbeddedProcess(tmp_path, listen=f"127.0.0.1:{free_port()}")
    write(node.manifests / "web.yaml", nad("blue", cidr="10.1.0.0/24"), pod("web", networks="blue"))
    await asyncio.to_thread(node.start)
    try:
        with started(f"http://{node.listen}", "pods", "-w", "-o", "json", "--output-watch-events") as process:
            first = json.loads(await line_of(process.stdout))
            assert (first["type"], first["object"]["name"], first["object"]["state"]) == ("ADDED", "web", "Ready")
            await asyncio.to_thread(node.kill)
            assert "connecting again" in await line_of(process.stderr)
            write(node.manifests / "late.yaml", pod("late", networks="blue"))
            await asyncio.to_thread(node.start)
            state = ""
            while state != "Ready":  # it may be seen while it waits
                change = json.loads(await line_of(process.stdout))
                state = change["object"]["state"] if change["object"]["name"] == "late" else ""
    finally:
        node.kill()
