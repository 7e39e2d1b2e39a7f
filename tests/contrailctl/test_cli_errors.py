"""Every error is one line that names the URL; the exit status distinguishes failures from usage errors."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from tests.support.contrailctl_command import CommandOutcome, Run
from tests.support.fake_apis import Handler, served

Bytes = Callable[[asyncio.StreamWriter], None]


def page(text: str, status: int) -> Handler:
    async def handler(_request: web.Request) -> web.Response:
        return web.Response(text=text, status=status)

    return handler


@asynccontextmanager
async def serve_bytes(answer: Bytes) -> AsyncIterator[str]:
    """Serves bytes and then keeps the connection open until its peer closes it."""

    talks: list[asyncio.Task[None] | None] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.append(asyncio.current_task())
        answer(writer)
        while await reader.read(1000):
            pass
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with asyncio.timeout(10.0):
            await asyncio.gather(*filter(None, talks))  # each sees that its peer has closed


def failed(ended: CommandOutcome, message: str) -> None:
    assert (ended.status, ended.out) == (1, "")
    assert ended.err == f"contrailctl: {message}\n"


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        ('{"error": "no such kind"}', 404, "no such kind"),
        ("nothing here", 404, "Not Found"),
        ('{"error": "name: is too long"}', 400, "name: is too long (status 400)"),
        ('{"error": "two\\nlines"}', 500, "two lines (status 500)"),
        ("", 503, "Service Unavailable (status 503)"),
    ],
)
async def test_an_error_response_is_reported(contrailctl: Run, text: str, status: int, message: str) -> None:
    async with served([web.get("/v1/pods", page(text, status))]) as url:
        failed(await contrailctl("--manager", url, "get", "pods"), f"{url}/v1/pods: {message}")


@pytest.mark.parametrize(
    "text", ["", "[]", "<html>", '{"items": 1}', '{"items": [{"namespace": 1}]}', '{"items": [{"x": 1}]}']
)
async def test_an_invalid_response_of_the_manager_is_reported(contrailctl: Run, text: str) -> None:
    async with served([web.get("/v1/pods", page(text, 200))]) as url:
        ended = await contrailctl("--manager", url, "get", "pods")
    assert ended.status == 1
    assert ended.err.startswith(f"contrailctl: {url}/v1/pods: invalid response, or a manager of another version: ")


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"id": "x"}]', "[]"])
async def test_an_invalid_response_of_an_agent_is_reported(contrailctl: Run, text: str) -> None:
    async with served([web.get("/vm-cfg/k8s__shop__router", page(text, 200))]) as url:
        ended = await contrailctl("--agent", url, "describe", "pod", "shop/router")
    assert ended.status == 1
    assert ended.err.startswith(f"contrailctl: {url}/vm-cfg/k8s__shop__router: ")


async def test_a_refused_connection_is_reported(contrailctl: Run, unreachable_url: str) -> None:
    failed(await contrailctl("--manager", unreachable_url, "get", "pods"), f"{unreachable_url}: Connection refused")


async def test_an_unknown_host_is_reported(contrailctl: Run) -> None:
    ended = await contrailctl("--manager", "http://no-such-host.invalid:1", "get", "pods")
    assert ended.status == 1
    assert ended.err.startswith("contrailctl: http://no-such-host.invalid:1: ")


async def test_a_server_without_response_times_out(contrailctl: Run) -> None:
    async with serve_bytes(lambda writer: None) as url:
        ended = await contrailctl("--manager", url, "--timeout", "0.2", "get", "pods")
    failed(ended, f"{url}: timed out after 0.2 s")


async def test_a_slow_body_times_out(contrailctl: Run) -> None:
    """Each byte arrives in time, the whole body does not."""

    async def trickle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b" ")
                await asyncio.sleep(0.02)
        except ConnectionError:
            return response

    async with served([web.get("/v1/pods", trickle)]) as url:
        ended = await contrailctl("--manager", url, "--timeout", "0.3", "get", "pods")
    failed(ended, f"{url}: timed out after 0.3 s")


async def test_a_server_without_http_is_reported(contrailctl: Run) -> None:
    async with serve_bytes(lambda writer: writer.write(b"SSH-2.0-x\r\n\r\n")) as url:
        ended = await contrailctl("--manager", url, "get", "pods")
    assert ended.status == 1
    assert ended.err.startswith(f"contrailctl: {url}: not an HTTP response: ")


class TestUsageErrors:
    @pytest.mark.parametrize(
        "url", ["127.0.0.1:8083", "https://h", "http:///x", "unix:/run/x", "http://h:port", "http://h:99999"]
    )
    async def test_an_invalid_url(self, contrailctl: Run, url: str) -> None:
        ended = await contrailctl("--manager", url, "get", "pods")
        assert ended.status == 2
        assert ended.err.startswith(f"contrailctl: {url}: ")

    @pytest.mark.parametrize(
        "argv",
        [
            [],
            ["get"],
            ["get", "routers"],
            ["describe"],
            ["describe", "pod"],
            ["cni"],
            ["get", "pods", "-n", "a", "-A"],
            ["get", "pods", "-o", "xml"],
            ["get", "pods", "--timeout", "0"],
            ["get", "pods", "--timeout", "soon"],
        ],
    )
    async def test_an_invalid_command_line(self, contrailctl: Run, argv: list[str]) -> None:
        ended = await contrailctl(*argv)
        assert ended.status == 2
        assert "contrailctl" in ended.err

    @pytest.mark.parametrize("time", ["x", "", "0", "-1", "nan", "inf", "1e6"])
    async def test_an_invalid_timeout(self, contrailctl: Run, time: str) -> None:
        ended = await contrailctl("get", "pods", f"--timeout={time}")
        assert ended.status == 2
        message = f"argument --timeout: '{time}' is not a number of seconds above 0 and below 1000000"
        assert ended.err.splitlines()[-1].endswith(f"error: {message}")

    async def test_help_and_version_are_no_failure(self, contrailctl: Run) -> None:
        assert (await contrailctl("--help")).status == 0
        assert (await contrailctl("--version")).out.startswith("contrailctl ")


async def test_a_closed_pipe_is_no_failure(manager: str) -> None:
    """As with `| head`: the pipe is closed before the command writes."""
    program = "from contrailctl.cli import main; raise SystemExit(main())"
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", program, "--manager", manager, "get", "pods"),
            stdout=write_end,
            stderr=asyncio.subprocess.PIPE,
        )
    finally:
        os.close(write_end)
    _, message = await asyncio.wait_for(process.communicate(), 30)
    assert (process.returncode, message) == (0, b"")
