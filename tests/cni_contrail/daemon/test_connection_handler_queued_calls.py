"""Calls that were acknowledged and have not begun: dropped, cancelled or refused without work."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cni_contrail.daemon.configuration import DaemonConfiguration
from cni_contrail.daemon.connection_handler import ConnectionHandler
from cni_contrail.daemon.execution_context import DaemonContext
from cni_contrail.daemon.protocol import ShimRequest
from cni_contrail.daemon.shim_connection import ShimConnection
from cni_contrail.daemon.workers import Work
from contrail_service.file_limit import raise_file_limit
from tests.support.shim import ANSWER

MOST_ADDS = 512
MOST_OTHERS = 128
ADD_SLOTS = 4


class Shim:
    """The shim's end of a connection to the handler."""

    def __init__(self) -> None:
        self._connection, theirs = socket.socketpair()
        self._connection.settimeout(20)
        self.connection = ShimConnection(theirs)

    def hang_up(self) -> None:
        """Closes the connection, like a killed shim."""
        self._connection.close()

    def error(self) -> Any:
        """The error that was sent; confirms it."""
        status, length = ANSWER.unpack(self._connection.recv(ANSWER.size))
        assert status == 1
        document = json.loads(self._connection.recv(length))
        self._connection.sendall(b"\1")
        return document

    def is_closed(self) -> bool:
        """Whether the handler has closed the connection."""
        return self._connection.recv(1) == b""


class Handler:
    """A handler whose calls run when the test says so."""

    def __init__(self, folder: Path) -> None:
        settings = {"state-dir": str(folder / "state"), "config-dir": str(folder / "ports"), "agent-socket": "/none"}
        self.context = DaemonContext(DaemonConfiguration(settings=settings), json_lines=False)
        self.begun: list[Work] = []
        self.handler = ConnectionHandler(self.context, self.begun.append)
        self.shims: list[Shim] = []

    def call(self, command: str, container: str = "c1") -> Shim:
        """Hands a call over, as the receiver does."""
        self.shims.append(shim := Shim())
        environment = {"CNI_COMMAND": command, "CNI_CONTAINERID": container, "CNI_IFNAME": "eth0"}
        environment |= {"CNI_NETNS": "/run/netns/none", "CNI_PATH": "/opt/cni/bin"}
        data = json.dumps({"cniVersion": "1.1.0", "name": "contrail-k8s-cni", "type": "contrail-k8s-cni"})
        self.handler.receive(shim.connection, ShimRequest(environment, data.encode(), 2))
        return shim

    def run_all(self) -> None:
        """Runs all calls that have a slot, and those that follow them."""
        while self.begun:
            self.begun.pop(0)()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Runs all calls in another thread, so that the test can answer as their shims."""
        thread = threading.Thread(target=self.run_all)
        thread.start()
        yield
        thread.join(20)
        assert not thread.is_alive()

    def sample(self, name: str, **labels: str) -> float | None:
        """A value of the metrics."""
        return self.context.metrics.registry.get_sample_value(name, labels)


@pytest.fixture
def handler(tmp_path: Path) -> Iterator[Handler]:
    raise_file_limit()
    handler = Handler(tmp_path)
    yield handler
    for shim in handler.shims:
        shim.hang_up()
        shim.connection.close()


def test_an_add_whose_shim_has_hung_up_is_dropped_without_work(
    handler: Handler, capfd: pytest.CaptureFixture[str]
) -> None:
    handler.call("ADD").hang_up()
    handler.run_all()
    assert handler.sample("contrail_cnid_dropped_total") == 1
    assert handler.sample("contrail_cnid_errors_total", command="ADD", code="11") is None
    assert "container=c1 ifname=eth0 ADD dropped before it began" in capfd.readouterr().err


def test_a_del_whose_shim_has_hung_up_is_run(handler: Handler) -> None:
    handler.call("DEL").hang_up()
    handler.run_all()
    assert handler.sample("contrail_cnid_dropped_total") == 0
    assert handler.sample("contrail_cnid_seconds_count", command="DEL", phase="whole") == 1


def test_a_queued_add_is_cancelled_by_del_of_its_attachment(handler: Handler) -> None:
    deleted, other = handler.call("ADD"), handler.call("ADD", "c2")
    handler.call("DEL").hang_up()
    with handler.running():
        assert deleted.error()["msg"] == "attachment eth0: deleted while ADD was waiting for its interfaces"
        assert other.error()["code"] == 4


def test_queued_adds_fail_when_the_daemon_stops(handler: Handler) -> None:
    shim = handler.call("ADD")
    handler.handler.cancellable.close("the node daemon is stopping")
    late = handler.call("ADD", "c2")
    with handler.running():
        assert [each.error()["msg"] for each in (shim, late)] == ["the node daemon is stopping"] * 2


def test_a_status_that_waits_for_its_agent_fails_when_the_daemon_stops(handler: Handler) -> None:
    shim = handler.call("STATUS")
    with handler.running():
        handler.handler.cancellable.close("the node daemon is stopping")
        begin = time.monotonic()
        failed = shim.error()
        assert time.monotonic() - begin < 3  # less than it waits for an agent
    assert (failed["code"], failed["msg"]) == (50, "the node daemon is stopping")


def test_other_calls_begin_while_all_adds_are_queued(handler: Handler) -> None:
    for number in range(MOST_ADDS):
        handler.call("ADD", f"c{number}")
    assert len(handler.begun) == ADD_SLOTS
    for command in ("DEL", "CHECK", "STATUS", "GC"):
        handler.call(command)
    assert len(handler.begun) == ADD_SLOTS + 4


def test_an_add_too_many_is_refused_at_once(handler: Handler) -> None:
    for number in range(MOST_ADDS):
        handler.call("ADD", f"c{number}")
    refused = handler.call("ADD", "late")
    del handler.begun[:ADD_SLOTS]
    with handler.running():
        assert refused.error()["msg"] == f"too many ADDs: {MOST_ADDS} have not ended"
        assert refused.is_closed()


def test_a_call_beyond_all_bounds_is_closed_and_forgotten(handler: Handler) -> None:
    for _ in range(MOST_OTHERS):
        handler.call("STATUS")
    closed = handler.call("STATUS")
    assert closed.is_closed()
    assert handler.sample("contrail_cnid_running", phase="queue") == MOST_OTHERS


def test_a_bug_in_one_call_is_logged_and_others_go_on(
    handler: Handler, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("bug")

    with monkeypatch.context() as patched:
        patched.setattr(ConnectionHandler, "_run_call", fail)
        handler.call("STATUS")
        handler.run_all()
    assert "call failed by an unexpected exception: Traceback" in capfd.readouterr().err
    handler.call("DEL").hang_up()
    handler.run_all()
    assert handler.sample("contrail_cnid_seconds_count", command="DEL", phase="whole") == 1


def test_the_time_in_the_queue_is_measured(handler: Handler) -> None:
    handler.call("DEL").hang_up()
    assert handler.sample("contrail_cnid_running", phase="queue") == 1
    handler.run_all()
    assert handler.sample("contrail_cnid_running", phase="queue") == 0
    assert handler.sample("contrail_cnid_seconds_count", command="DEL", phase="queue") == 1
