"""A missing, hanging or restarting daemon is error 11, an invalid response 107; each error names the socket.

For STATUS each of them is error 50: no ADD can be served.
"""

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cni_contrail.conftest import until
from tests.support.shim import ADD, ANSWER, Received, ScriptedDaemon, Shim, ShimOutcome

STATUS = {"CNI_COMMAND": "STATUS"}
AWAY, NONSENSE = 11, 107
COMMANDS = pytest.mark.parametrize("command", ["ADD", "DEL", "STATUS"])


def error_of(shim: Shim, outcome: ShimOutcome) -> tuple[int, str]:
    """Code and cause of the error that the shim printed."""
    assert outcome.status == 1
    document: dict[str, Any] = json.loads(outcome.stdout)
    assert list(document) == ["cniVersion", "code", "msg", "details"]
    assert document["cniVersion"] == "1.1.0"
    assert document["details"] == shim.socket_path
    what, cause = document["msg"].split(": ", 1)
    assert what in ("contrail-cnid unavailable", "contrail-cnid violates the protocol")
    return document["code"], cause


def code_of(command: str, code: int) -> int:
    return 50 if command == "STATUS" else code


class TestDaemonMissing:
    @pytest.fixture
    def shim(self, sanitized: Shim) -> Shim:
        """The binary that waits for a missing daemon for one second only."""
        return sanitized

    @COMMANDS
    def test_a_missing_socket(self, shim: Shim, command: str) -> None:
        outcome = shim.run({"CNI_COMMAND": command})
        assert error_of(shim, outcome) == (code_of(command, AWAY), "No such file or directory")

    def test_a_missing_directory_of_the_default_socket(self, shim: Shim) -> None:
        for unset in ({**ADD, "CONTRAIL_CNI_SOCKET": ""}, STATUS | {"CONTRAIL_CNI_SOCKET": ""}):
            with shim.started(unset, prefix=("unshare", "--mount", "sh", "-c", EMPTY_RUN, "sh")) as running:
                document = json.loads(running.outcome().stdout)
            assert document["details"] == "/run/contrail/cni.sock"
            assert document["msg"].endswith(": No such file or directory")

    @COMMANDS
    def test_a_stale_socket(self, shim: Shim, daemon: ScriptedDaemon, command: str) -> None:
        daemon.stop()
        outcome = shim.run({"CNI_COMMAND": command})
        assert error_of(shim, outcome) == (code_of(command, AWAY), "Connection refused")

    def test_a_regular_file_at_the_path(self, shim: Shim) -> None:
        Path(shim.socket_path).touch()
        assert error_of(shim, shim.run(ADD)) == (AWAY, "Connection refused")

    def test_a_datagram_socket(self, shim: Shim) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.bind(shim.socket_path)
            assert error_of(shim, shim.run(ADD)) == (AWAY, "Protocol wrong type for socket")

    def test_a_socket_without_permission(self, installed: Shim, daemon: ScriptedDaemon) -> None:
        Path(installed.socket_path).parent.chmod(0o755)
        Path(installed.socket_path).chmod(0o600)
        wrapped = ("setpriv", "--reuid=65534", "--clear-groups")
        assert error_of(installed, installed.run(ADD, prefix=wrapped)) == (AWAY, "Permission denied")


EMPTY_RUN = 'mount -t tmpfs tmpfs /run && exec "$@"'


class TestDaemonHangs:
    """Runs one call per command concurrently, since each takes as long as its timeout."""

    def errors_of_all(
        self, shim: Shim, stdin: bytes = b"", play: Callable[[], AbstractContextManager[object]] = nullcontext
    ) -> set[tuple[str, int, str]]:
        with ExitStack() as stack:
            calls = {
                command: stack.enter_context(shim.started({"CNI_COMMAND": command}, stdin))
                for command in ("ADD", "DEL", "STATUS")
            }
            with play():
                return {(command, *error_of(shim, running.outcome())) for command, running in calls.items()}

    @contextmanager
    def acknowledged(self, daemon: ScriptedDaemon, more: bytes = b"") -> Iterator[None]:
        with ExitStack() as stack:
            for _ in range(3):
                connection = stack.enter_context(daemon.take()[0])
                connection.socket.sendall(more)
            yield

    def expected_of_all(self, cause: str) -> set[tuple[str, int, str]]:
        return {("ADD", AWAY, cause), ("DEL", AWAY, cause), ("STATUS", 50, cause)}

    def test_a_full_backlog(self, installed: Shim) -> None:
        with ScriptedDaemon(installed.socket_path, backlog=0), socket.socket(socket.AF_UNIX) as other:
            other.connect(installed.socket_path)  # fills the queue
            assert self.errors_of_all(installed) == self.expected_of_all("connecting timed out after 10 s")

    def test_a_stopped_daemon_with_connections_in_its_backlog(self, installed: Shim, daemon: ScriptedDaemon) -> None:
        assert self.errors_of_all(installed) == self.expected_of_all("no acknowledgement after 2 s")

    def test_a_large_request_that_is_not_read(self, installed: Shim, daemon: ScriptedDaemon) -> None:
        assert self.errors_of_all(installed, b"x" * 1_000_000) == self.expected_of_all("no acknowledgement after 2 s")

    def test_an_acknowledgement_without_a_response(self, sanitized: Shim, daemon: ScriptedDaemon) -> None:
        errors = self.errors_of_all(sanitized, play=lambda: self.acknowledged(daemon))
        assert errors == self.expected_of_all("no response after 2 s")

    @pytest.mark.parametrize("incomplete", [b"\0", ANSWER.pack(0, 100), ANSWER.pack(0, 100) + b"{"])
    def test_a_response_that_never_ends(self, sanitized: Shim, daemon: ScriptedDaemon, incomplete: bytes) -> None:
        errors = self.errors_of_all(sanitized, play=lambda: self.acknowledged(daemon, incomplete))
        assert errors == self.expected_of_all("no response after 2 s")

    def test_a_slow_response_does_not_extend_the_deadline(self, sanitized: Shim, daemon: ScriptedDaemon) -> None:
        with sanitized.started(ADD) as running:
            connection, _ = daemon.take()
            with connection:
                connection.socket.sendall(ANSWER.pack(0, 1_000_000))
                while running.process.poll() is None:
                    try:
                        connection.socket.sendall(b"x")
                    except BrokenPipeError:
                        break
                outcome = running.outcome()
        assert error_of(sanitized, outcome) == (AWAY, "no response after 2 s")

    def test_the_installed_binary_waits_two_minutes(self, installed: Shim, daemon: ScriptedDaemon) -> None:
        """The timeout is read from the system call in which the process waits."""
        with installed.started(ADD) as running:
            with daemon.accept() as connection:
                connection.receive()
                assert 1_000 < timeout_of(running.process.pid, at_most=2_000) <= 2_000
                connection.acknowledge()
                assert 118_000 < timeout_of(running.process.pid, at_most=120_000, more_than=2_000) <= 120_000
                connection.answer(0, b"")
            assert running.outcome().status == 0


def timeout_of(pid: int, *, at_most: int, more_than: int = 0) -> int:
    """Returns the timeout, in milliseconds, of the poll(2) in which a process waits, once it is within the bounds."""
    seen: list[int] = []

    def waits() -> bool:
        words = Path(f"/proc/{pid}/syscall").read_text().split()
        seen.append(int(words[3], 16) if len(words) > 4 else 0)
        return more_than < seen[-1] <= at_most

    until(waits)
    return seen[-1]


class TestDaemonRestarts:
    """The request is repeated while the daemon is away, until it was acknowledged once."""

    @COMMANDS
    def test_a_daemon_that_starts_later(self, installed: Shim, command: str) -> None:
        with installed.started({"CNI_COMMAND": command}, b"{}") as running:
            timeout_of(running.process.pid, at_most=50)
            with ScriptedDaemon(installed.socket_path) as daemon:
                self.serve(daemon)
                assert running.outcome().status == 0

    def test_a_daemon_that_replaces_a_stale_socket(self, installed: Shim, daemon: ScriptedDaemon) -> None:
        daemon.stop()
        with installed.started(ADD, b"{}") as running:
            timeout_of(running.process.pid, at_most=50)
            Path(installed.socket_path).unlink()
            with ScriptedDaemon(installed.socket_path) as successor:
                self.serve(successor)
                assert running.outcome().status == 0

    @COMMANDS
    def test_a_restart_before_the_request_is_read(self, shim: Shim, daemon: ScriptedDaemon, command: str) -> None:
        with shim.started({"CNI_COMMAND": command}, b"x" * 500_000) as running:
            daemon.accept().socket.close()
            self.serve(daemon, b"x" * 500_000)
            assert running.outcome().status == 0

    def test_a_restart_before_the_acknowledgement(self, shim: Shim, daemon: ScriptedDaemon, tmp_path: Path) -> None:
        netns = {"CNI_NETNS": str(tmp_path)}
        with shim.started({**ADD, **netns}, b"{}") as running:
            with daemon.accept() as connection:
                first = connection.receive()
            assert self.serve(daemon) == first
            assert running.outcome().status == 0

    def test_a_restart_with_connections_in_the_backlog(self, sanitized: Shim, daemon: ScriptedDaemon) -> None:
        with sanitized.started(ADD) as running:
            daemon.wait_for_call()
            daemon.stop()
            assert error_of(sanitized, running.outcome()) == (AWAY, "Connection refused")

    def test_daemons_that_never_acknowledge(self, sanitized: Shim, daemon: ScriptedDaemon) -> None:
        with sanitized.started(ADD) as running:
            while running.process.poll() is None:
                with suppress(TimeoutError):
                    daemon.accept(timeout=0.1).socket.close()
            code, cause = error_of(sanitized, running.outcome())
        assert code == AWAY
        assert cause in ("connection closed", "Connection reset by peer")

    def serve(self, daemon: ScriptedDaemon, stdin: bytes = b"{}") -> Received:
        connection, received = daemon.take()
        with connection:
            assert received.stdin == stdin
            connection.answer(0, b"")
        return received

    @COMMANDS
    def test_a_restart_before_the_response(self, shim: Shim, daemon: ScriptedDaemon, command: str) -> None:
        with shim.started({"CNI_COMMAND": command}) as running:
            daemon.take()[0].socket.close()
            assert error_of(shim, running.outcome()) == (code_of(command, AWAY), "connection closed")


WHOLE = ANSWER.pack(0, 10) + b"0123456789"


class TestInvalidResponse:
    def answered(self, shim: Shim, daemon: ScriptedDaemon, answer: bytes, command: str = "ADD") -> tuple[int, str]:
        with shim.started({"CNI_COMMAND": command}) as running:
            connection, _ = daemon.take()
            with connection:
                connection.socket.sendall(answer)
            return error_of(shim, running.outcome())

    @pytest.mark.parametrize("length", range(1, len(WHOLE)))
    def test_a_response_truncated_at_any_byte(self, shim: Shim, daemon: ScriptedDaemon, length: int) -> None:
        assert self.answered(shim, daemon, WHOLE[:length]) == (NONSENSE, "truncated response")

    @pytest.mark.parametrize("status", [3, 7, 255, 256, 2**31, 2**32 - 1])
    def test_an_invalid_exit_status(self, shim: Shim, daemon: ScriptedDaemon, status: int) -> None:
        answer = ANSWER.pack(status, 2) + b"{}"
        assert self.answered(shim, daemon, answer) == (NONSENSE, "exit status is neither 0 nor 1")

    @pytest.mark.parametrize("size", [2**20 + 1, 2**31 - 1, 2**31, 2**32 - 1])
    def test_an_oversized_output(self, shim: Shim, daemon: ScriptedDaemon, size: int) -> None:
        answer = ANSWER.pack(0, size) + b"x" * 5000
        assert self.answered(shim, daemon, answer) == (NONSENSE, "output is longer than 1048576 bytes")

    @pytest.mark.parametrize("more", [b"x", b"x" * 100_000])
    @pytest.mark.parametrize("size", [0, 10])
    def test_output_longer_than_announced(self, shim: Shim, daemon: ScriptedDaemon, size: int, more: bytes) -> None:
        answer = ANSWER.pack(0, size) + b"0" * size + more
        assert self.answered(shim, daemon, answer) == (NONSENSE, "output is longer than announced")

    def test_any_failure_is_code_50_for_status(self, shim: Shim, daemon: ScriptedDaemon) -> None:
        assert self.answered(shim, daemon, WHOLE[:9], "STATUS") == (50, "truncated response")

    @pytest.mark.parametrize("byte", [b"\0", b"\2", b"\xff", b"H"])
    def test_an_invalid_acknowledgement(self, shim: Shim, daemon: ScriptedDaemon, byte: bytes) -> None:
        with shim.started(ADD) as running:
            with daemon.accept() as connection:
                connection.receive()
                connection.socket.sendall(byte + WHOLE)
            assert error_of(shim, running.outcome()) == (NONSENSE, "invalid acknowledgement")

    def test_an_http_server(self, shim: Shim, daemon: ScriptedDaemon) -> None:
        with shim.started(ADD) as running:
            with daemon.accept() as connection:
                connection.socket.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            assert error_of(shim, running.outcome()) == (NONSENSE, "invalid acknowledgement")

    def test_nothing_of_an_invalid_response_reaches_standard_output(self, shim: Shim, daemon: ScriptedDaemon) -> None:
        with shim.started(ADD) as running:
            connection, _ = daemon.take()
            with connection:
                connection.socket.sendall(ANSWER.pack(0, 11) + b'{"secret":1' + b"2")
            assert b"secret" not in running.outcome().stdout


class TestSocketPathOfAnyBytes:
    @pytest.mark.parametrize("name", [b'a"b', b"a\\", b"a\nb\x01", b"\xff\xfe", "é".encode(), b"\x7f", b"%s%n"])
    def test_the_error_is_json(self, sanitized: Shim, name: bytes) -> None:
        path = os.fsencode(Path(sanitized.socket_path).parent) + b"/" + name
        outcome = sanitized.run({b"CNI_COMMAND": b"ADD", b"CONTRAIL_CNI_SOCKET": path})
        details = json.loads(outcome.stdout.decode("ascii"))["details"]
        shown = "".join(chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}" for byte in path)
        assert details == shown
