"""A process without files for further connections logs one line per minute, without a traceback."""

import asyncio
import errno
import logging
import os
import resource
import socket

import pytest

from contrail_service.file_limit_errors import LOG_INTERVAL, FileLimitErrors
from tests.support.served_agent import until

OUT_OF_FILES = {"message": "socket.accept() out of system resource", "exception": OSError(errno.EMFILE, "Too many")}


class Loop(asyncio.SelectorEventLoop):
    """A loop whose clock is set."""

    now = 1000.0

    def time(self) -> float:
        return self.now


async def test_connections_that_cannot_be_accepted_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.get_running_loop().set_exception_handler(FileLimitErrors().handle)
    accepted = asyncio.Event()

    def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.set()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket() as client:
        client.setblocking(False)
        os.close(free := os.dup(client.fileno()))
        resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
        try:
            client.connect_ex(server.sockets[0].getsockname())
            await until(lambda: caplog.records)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        async with asyncio.timeout(10):
            await accepted.wait()  # asyncio retries after a second
    server.close()
    await server.wait_closed()
    (record,) = caplog.records
    assert record.getMessage() == (
        "new connections wait: [Errno 24] Too many open files; further errors are not logged for 60 s"
    )
    assert record.exc_info is None


def test_a_further_line_follows_after_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    loop = Loop()
    errors = FileLimitErrors()
    for _ in range(2):
        for _ in range(1000):
            errors.handle(loop, dict(OUT_OF_FILES))
        loop.now += LOG_INTERVAL
    loop.close()
    assert len(caplog.records) == 2


def test_other_errors_are_logged_as_asyncio_does(caplog: pytest.LogCaptureFixture) -> None:
    loop = Loop()
    caplog.set_level(logging.ERROR)
    FileLimitErrors().handle(loop, {"message": "broken", "exception": OSError(errno.EIO, "disk")})
    loop.close()
    assert [(record.name, record.getMessage()) for record in caplog.records] == [("asyncio", "broken")]
