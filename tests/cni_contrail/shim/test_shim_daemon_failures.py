"""A daemon that is missing, hangs or is restarted is error 11, one that answers nonsense 107; each names the socket.

To STATUS all of it is error 50: no ADD can be served.
"""

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.cni_contrail.conftest import until
from tests.support.shim import ADD, ANSWER, PlayedDaemon, Shim, ShimOutcome

STATUS = {"CNI_COMMAND": "STATUS"}
AWAY, NONSENSE = 11, 107
COMMANDS = pytest.mark.parametrize("command", ["ADD", "DEL", "STATUS"])


def told(shim: Shim, outcome: ShimOutcome) -> tuple[int, str]:
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


class TestNobodyThere:
    @COMMANDS
    def test_no_socket(self, shim: Shim, command: str) -> None:
        outcome = shim.run({"CNI_COMMAND": command})
        assert told(shim, outcome) == (code_of(command, AWAY), "No such file or directory")

    def test_no_folder_for_the_socket_that_is_looked_for_by_default(self, shim: Shim) -> None:
        for unset in ({**ADD, "CONTRAIL_CNI_SOCKET": ""}, STATUS | {"CONTRAIL_CNI_SOCKET": ""}):
            with shim.started(unset, prefix=("unshare", "--mount", "sh", "-c", EMPTY_RUN, "sh")) as running:
                document = json.loads(running.outcome().stdout)
            assert document["details"] == "/run/contrail/cni.sock"
            assert document["msg"].endswith(": No such file or directory")

    @COMMANDS
    def test_a_socket_that_a_dead_daemon_left(self, shim: Shim, daemon: PlayedDaemon, command: str) -> None:
        daemon.stop()
        outcome = shim.run({"CNI_COMMAND": command})
        assert told(shim, outcome) == (code_of(command, AWAY), "Connection refused")

    def test_something_that_is_no_socket(self, shim: Shim) -> None:
        Path(shim.socket_path).touch()
        assert told(shim, shim.run(ADD)) == (AWAY, "Connection refused")

    def test_a_socket_of_another_kind(self, shim: Shim) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.bind(shim.socket_path)
            assert told(shim, shim.run(ADD)) == (AWAY, "Protocol wrong type for socket")

    def test_a_socket_that_this_user_may_not_open(self, installed: Shim, daemon: PlayedDaemon) -> None:
        Path(installed.socket_path).parent.chmod(0o755)
        Path(installed.socket_path).chmod(0o600)
        wrapped = ("setpriv", "--reuid=65534", "--clear-groups")
        assert told(installed, installed.run(ADD, prefix=wrapped)) == (AWAY, "Permission denied")


EMPTY_RUN = 'mount -t tmpfs tmpfs /run && exec "$@"'


class TestItHangs:
    """Calls of each command at the same time, since each takes as long as it waits."""

    def all_told(
        self, shim: Shim, stdin: bytes = b"", play: Callable[[], AbstractContextManager[object]] = nullcontext
    ) -> set[tuple[str, int, str]]:
        with ExitStack() as stack:
            calls = {
                command: stack.enter_context(shim.started({"CNI_COMMAND": command}, stdin))
                for command in ("ADD", "DEL", "STATUS")
            }
            with play():
                return {(command, *told(shim, running.outcome())) for command, running in calls.items()}

    @contextmanager
    def acknowledged(self, daemon: PlayedDaemon, more: bytes = b"") -> Iterator[None]:
        with ExitStack() as stack:
            for _ in range(3):
                connection = stack.enter_context(daemon.take()[0])
                connection.socket.sendall(more)
            yield

    def of_all(self, cause: str) -> set[tuple[str, int, str]]:
        return {("ADD", AWAY, cause), ("DEL", AWAY, cause), ("STATUS", 50, cause)}

    def test_it_takes_no_call(self, installed: Shim) -> None:
        with PlayedDaemon(installed.socket_path, backlog=0), socket.socket(socket.AF_UNIX) as other:
            other.connect(installed.socket_path)  # fills the queue
            assert self.all_told(installed) == self.of_all("connecting timed out after 2 s")

    def test_it_is_stopped_with_calls_in_its_queue(self, installed: Shim, daemon: PlayedDaemon) -> None:
        assert self.all_told(installed) == self.of_all("no acknowledgement after 2 s")

    def test_it_reads_no_large_request(self, installed: Shim, daemon: PlayedDaemon) -> None:
        assert self.all_told(installed, b"x" * 1_000_000) == self.of_all("no acknowledgement after 2 s")

    def test_it_acknowledges_and_never_answers(self, sanitized: Shim, daemon: PlayedDaemon) -> None:
        told_to_all = self.all_told(sanitized, play=lambda: self.acknowledged(daemon))
        assert told_to_all == self.of_all("no response after 2 s")

    @pytest.mark.parametrize("begun", [b"\0", ANSWER.pack(0, 100), ANSWER.pack(0, 100) + b"{"])
    def test_it_never_ends_its_answer(self, sanitized: Shim, daemon: PlayedDaemon, begun: bytes) -> None:
        told_to_all = self.all_told(sanitized, play=lambda: self.acknowledged(daemon, begun))
        assert told_to_all == self.of_all("no response after 2 s")

    def test_a_trickle_does_not_prolong_the_wait(self, sanitized: Shim, daemon: PlayedDaemon) -> None:
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
        assert told(sanitized, outcome) == (AWAY, "no response after 2 s")

    def test_on_nodes_it_is_waited_for_two_minutes(self, installed: Shim, daemon: PlayedDaemon) -> None:
        """Read from the system call that it waits in."""
        with installed.started(ADD) as running:
            with daemon.accept() as connection:
                connection.receive()
                assert 1_000 < patience_of(running.process.pid, at_most=2_000) <= 2_000
                connection.acknowledge()
                assert 118_000 < patience_of(running.process.pid, at_most=120_000, more_than=2_000) <= 120_000
                connection.answer(0, b"")
            assert running.outcome().status == 0


def patience_of(pid: int, *, at_most: int, more_than: int = 0) -> int:
    """Milliseconds of the poll(2) that a process waits in, as soon as they are in these bounds."""
    seen: list[int] = []

    def waits() -> bool:
        words = Path(f"/proc/{pid}/syscall").read_text().split()
        seen.append(int(words[3], 16) if len(words) > 4 else 0)
        return more_than < seen[-1] <= at_most

    until(waits)
    return seen[-1]


class TestItIsRestarted:
    @COMMANDS
    def test_before_it_reads_the_request(self, shim: Shim, daemon: PlayedDaemon, command: str) -> None:
        with shim.started({"CNI_COMMAND": command}, b"x" * 500_000) as running:
            daemon.accept().socket.close()
            code, cause = told(shim, running.outcome())
        assert code == code_of(command, AWAY)
        assert cause in ("connection closed", "Connection reset by peer")

    def test_with_calls_in_its_queue(self, shim: Shim, daemon: PlayedDaemon) -> None:
        with shim.started(ADD) as running:
            daemon.wait_for_call()
            daemon.stop()
            code, cause = told(shim, running.outcome())
        assert code == AWAY
        assert cause in ("connection closed", "Connection reset by peer", "Connection refused")

    def test_before_it_acknowledges(self, shim: Shim, daemon: PlayedDaemon) -> None:
        with shim.started(ADD) as running:
            with daemon.accept() as connection:
                connection.receive()
            assert told(shim, running.outcome()) == (AWAY, "connection closed")

    @COMMANDS
    def test_before_it_answers(self, shim: Shim, daemon: PlayedDaemon, command: str) -> None:
        with shim.started({"CNI_COMMAND": command}) as running:
            daemon.take()[0].socket.close()
            assert told(shim, running.outcome()) == (code_of(command, AWAY), "connection closed")


WHOLE = ANSWER.pack(0, 10) + b"0123456789"


class TestItAnswersNonsense:
    def answered(self, shim: Shim, daemon: PlayedDaemon, answer: bytes, command: str = "ADD") -> tuple[int, str]:
        with shim.started({"CNI_COMMAND": command}) as running:
            connection, _ = daemon.take()
            with connection:
                connection.socket.sendall(answer)
            return told(shim, running.outcome())

    @pytest.mark.parametrize("length", range(1, len(WHOLE)))
    def test_an_answer_that_breaks_off_at_any_byte(self, shim: Shim, daemon: PlayedDaemon, length: int) -> None:
        assert self.answered(shim, daemon, WHOLE[:length]) == (NONSENSE, "truncated response")

    @pytest.mark.parametrize("status", [2, 7, 255, 256, 2**31, 2**32 - 1])
    def test_an_exit_status_that_is_none(self, shim: Shim, daemon: PlayedDaemon, status: int) -> None:
        answer = ANSWER.pack(status, 2) + b"{}"
        assert self.answered(shim, daemon, answer) == (NONSENSE, "exit status is neither 0 nor 1")

    @pytest.mark.parametrize("size", [2**20 + 1, 2**31 - 1, 2**31, 2**32 - 1])
    def test_an_output_that_would_be_too_long(self, shim: Shim, daemon: PlayedDaemon, size: int) -> None:
        answer = ANSWER.pack(0, size) + b"x" * 5000
        assert self.answered(shim, daemon, answer) == (NONSENSE, "output is longer than 1048576 bytes")

    @pytest.mark.parametrize("more", [b"x", b"x" * 100_000])
    @pytest.mark.parametrize("size", [0, 10])
    def test_more_than_it_said(self, shim: Shim, daemon: PlayedDaemon, size: int, more: bytes) -> None:
        answer = ANSWER.pack(0, size) + b"0" * size + more
        assert self.answered(shim, daemon, answer) == (NONSENSE, "output is longer than announced")

    def test_what_says_so_to_status_is_50(self, shim: Shim, daemon: PlayedDaemon) -> None:
        assert self.answered(shim, daemon, WHOLE[:9], "STATUS") == (50, "truncated response")

    @pytest.mark.parametrize("byte", [b"\0", b"\2", b"\xff", b"H"])
    def test_an_acknowledgement_that_is_none(self, shim: Shim, daemon: PlayedDaemon, byte: bytes) -> None:
        with shim.started(ADD) as running:
            with daemon.accept() as connection:
                connection.receive()
                connection.socket.sendall(byte + WHOLE)
            assert told(shim, running.outcome()) == (NONSENSE, "invalid acknowledgement")

    def test_another_server_altogether(self, shim: Shim, daemon: PlayedDaemon) -> None:
        with shim.started(ADD) as running:
            with daemon.accept() as connection:
                connection.socket.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            assert told(shim, running.outcome()) == (NONSENSE, "invalid acknowledgement")

    def test_nothing_of_it_reaches_standard_output(self, shim: Shim, daemon: PlayedDaemon) -> None:
        with shim.started(ADD) as running:
            connection, _ = daemon.take()
            with connection:
                connection.socket.sendall(ANSWER.pack(0, 11) + b'{"secret":1' + b"2")
            assert b"secret" not in running.outcome().stdout


class TestSocketNamesOfAnyBytes:
    @pytest.mark.parametrize("name", [b'a"b', b"a\\", b"a\nb\x01", b"\xff\xfe", "é".encode(), b"\x7f", b"%s%n"])
    def test_the_error_is_json(self, shim: Shim, name: bytes) -> None:
        path = os.fsencode(Path(shim.socket_path).parent) + b"/" + name
        outcome = shim.run({b"CNI_COMMAND": b"ADD", b"CONTRAIL_CNI_SOCKET": path})
        details = json.loads(outcome.stdout.decode("ascii"))["details"]
        shown = "".join(chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}" for byte in path)
        assert details == shown
