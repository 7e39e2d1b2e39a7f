"""Malformed HTTP: 400 as JSON, a closed connection, and no traceback in the log."""

import asyncio
import logging

import pytest
from aiohttp import web_protocol
from aiohttp.http_parser import HttpRequestParser, HttpRequestParserPy

from agent_api.request_bodies import RequestBodyReader
from tests.agent_api.conftest import StartAgent
from tests.support.raw_http import connected, exchanged, request
from tests.support.served_agent import ServedAgent
from tests.support.virtual_machines import SAMPLE_VM

END = b"\r\n\r\n"
HOST = b"\r\nHost: agent"

MALFORMED = {
    "no request at all": b"hello" + END,
    "a TLS handshake": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + END,
    "no path": b"GET" + END,
    "an unknown version": b"GET /vm-cfg/x HTTP/9.9" + HOST + END,
    "a strange method": b"G(T /vm-cfg/x HTTP/1.1" + HOST + END,
    "a NUL in the path": b"GET /vm-cfg/a\x00b HTTP/1.1" + HOST + END,
    "too long a path": b"GET /vm-cfg/" + b"x" * 9000 + b" HTTP/1.1" + HOST + END,
    "a header without colon": b"GET /vm-cfg/x HTTP/1.1" + HOST + b"\r\nNonsense" + END,
    "a NUL in a header": b"GET /vm-cfg/x HTTP/1.1" + HOST + b"\r\nX: a\x00b" + END,
    "too long a header": b"GET /vm-cfg/x HTTP/1.1" + HOST + b"\r\nX: " + b"x" * 5000 + END,
    "too many headers": b"GET /vm-cfg/x HTTP/1.1" + HOST + b"\r\nX: x" * 200 + END,
    "an invalid length": b"POST /vm HTTP/1.1" + HOST + b"\r\nContent-Length: ten" + END,
    "a negative length": b"POST /vm HTTP/1.1" + HOST + b"\r\nContent-Length: -1" + END,
    "two lengths": b"POST /vm HTTP/1.1" + HOST + b"\r\nContent-Length: 1\r\nContent-Length: 2" + END,
    "a length and chunks": b"POST /vm HTTP/1.1" + HOST + b"\r\nContent-Length: 2\r\nTransfer-Encoding: chunked" + END,
    "a chunk of no size": b"POST /vm HTTP/1.1" + HOST + b"\r\nTransfer-Encoding: chunked" + END + b"zz\r\n",
    "a chunk that is too long": b"POST /vm HTTP/1.1" + HOST + b"\r\nTransfer-Encoding: chunked" + END + b"1\r\nabc\r\n",
    "chunks without a reader": b"GET /gateway HTTP/1.1" + HOST + b"\r\nTransfer-Encoding: chunked" + END + b"zz\r\n",
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED.keys())
async def test_malformed_http_is_answered_with_400_and_closed(
    served: ServedAgent, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with connected(served.address) as connection:
        await connection.send(data)
        answer = await connection.answer()
        while answer.status == 200:  # the request was valid, but not what followed it
            answer = await connection.answer()
    assert answer.status == 400
    assert answer.error.startswith(("request: malformed HTTP: ", "body: malformed HTTP"))
    assert len(answer.error) < 300
    assert "\n" not in answer.error
    assert tracebacks(caplog) == []


CHUNKED = b"Host: agent\r\nTransfer-Encoding: chunked" + END


@pytest.mark.parametrize("parser", [HttpRequestParser, HttpRequestParserPy])
class TestInvalidChunk:
    """aiohttp has two parsers that report it in different ways."""

    @pytest.fixture
    async def served(
        self,
        start_agent: StartAgent,
        parser: type,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> ServedAgent:
        monkeypatch.setattr(web_protocol, "HttpRequestParser", parser)
        caplog.set_level(logging.DEBUG)
        return await start_agent(body_reader=RequestBodyReader(timeout=0.1), limits={"head_timeout": 0.1})

    async def test_after_a_valid_one_ends_the_body(self, served: ServedAgent, caplog: pytest.LogCaptureFixture) -> None:
        async with connected(served.address) as connection:
            await connection.send(b"POST /vm HTTP/1.1\r\n" + CHUNKED + b"1\r\n[\r\n")
            await asyncio.sleep(0.02)  # the agent reads
            await connection.send(b"zz\r\n")
            answer = await connection.answer()
            assert (answer.status, answer.error) in {
                (400, "body: malformed HTTP"),
                (408, "body: timed out after 0.1 s"),
            }
            assert await connection.ends()
        assert tracebacks(caplog) == []

    async def test_after_the_response_closes_the_connection(
        self, served: ServedAgent, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with connected(served.address) as connection:
            await connection.send(b"GET /gateway HTTP/1.1\r\n" + CHUNKED)
            assert (await connection.answer()).status == 200
            await connection.send(b"zz\r\n")
            assert await connection.ends()
        assert tracebacks(caplog) == []


def tracebacks(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.exc_info or record.levelno >= logging.WARNING]


async def test_other_clients_are_answered_afterwards(served: ServedAgent) -> None:
    for data in MALFORMED.values():
        async with connected(served.address) as connection:
            await connection.send(data)
    async with served.tcp.get("/healthz") as answer:
        assert answer.status == 200


@pytest.mark.parametrize("path", ["/vm", "/elsewhere", f"/vm/{SAMPLE_VM}"])
async def test_an_unknown_expectation_is_417_as_json(served: ServedAgent, path: str) -> None:
    answer = await exchanged(served.address, request("POST", path, b"[]", "Expect: a-miracle"))
    assert (answer.status, answer.error) == (417, "Unknown Expect: a-miracle")


async def test_the_expectation_of_curl_is_met(served: ServedAgent) -> None:
    async with connected(served.address) as connection:
        await connection.send(b"POST /gateway HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert await connection.line() == b"HTTP/1.1 100 Continue\r\n"
        assert await connection.line() == b"\r\n"
        await connection.send(b"[]")
        assert (await connection.answer()).status == 200


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET /vm-cfg/x HTTP/1.0\r\n\r\n", 404),
        (b"GET /vm-cfg/x\r\nHost: agent\r\n\r\n", 404),
        (b"OPTIONS * HTTP/1.1\r\nHost: agent\r\n\r\n", 404),
        (b"GET http://agent/vm-cfg/x HTTP/1.1\r\nHost: agent\r\n\r\n", 404),
        (b"GET /gateway HTTP/1.1\r\nHost: agent\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", 200),
        (b"TRACE /vm HTTP/1.1\r\nHost: agent\r\n\r\n", 404),
    ],
)
async def test_unusual_but_valid_http_is_answered(served: ServedAgent, data: bytes, status: int) -> None:
    assert (await exchanged(served.address, data)).status == status
