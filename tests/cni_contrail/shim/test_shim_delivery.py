"""The shim sends the receipt after the whole output is written; without it, the daemon rolls an ADD back."""

import array
import fcntl
import json
import os
import select
import signal
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO

import pytest

from tests.cni_contrail.conftest import until
from tests.support.shim import ADD, ANSWER, STEP_TIMEOUT, Running, ScriptedDaemon, Shim, as_file, identity

OUTPUT = b'{"cniVersion": "1.1.0"}\n'
PIPE_SIZE = 64 * 1024
LARGE = b"x" * 16 * PIPE_SIZE


class TestPieces:
    @pytest.mark.parametrize("output", [b"", OUTPUT])
    def test_a_response_sent_byte_by_byte(self, shim: Shim, daemon: ScriptedDaemon, output: bytes) -> None:
        with shim.started(ADD) as running:
            with daemon.accept() as connection:
                connection.receive()
                for byte in b"\1" + ANSWER.pack(0, len(output)) + output:
                    connection.socket.sendall(bytes([byte]))
                assert connection.receipt() == b"\1"
            assert running.outcome() == (0, output, b"")

    def test_a_response_sent_with_its_acknowledgement(self, shim: Shim, daemon: ScriptedDaemon) -> None:
        with shim.started(ADD) as running:
            with daemon.accept() as connection:
                connection.receive()
                connection.socket.sendall(b"\1" + ANSWER.pack(1, len(OUTPUT)) + OUTPUT)
                assert connection.receipt() == b"\1"
            assert running.outcome() == (1, OUTPUT, b"")

    def test_a_response_sent_before_the_request_is_read(self, shim: Shim, daemon: ScriptedDaemon) -> None:
        with shim.started(ADD, b"x" * 900_000) as running:
            with daemon.accept() as connection:
                connection.socket.sendall(b"\1" + ANSWER.pack(1, len(OUTPUT)) + OUTPUT)
            assert running.outcome() == (1, OUTPUT, b"")


class TestReaders:
    def test_no_receipt_is_sent_before_the_runtime_has_read_the_output(
        self, shim: Shim, daemon: ScriptedDaemon
    ) -> None:
        with prints_into_pipe(shim) as (running, pipe):
            connection, _ = daemon.take()
            with connection:
                connection.answer(0, LARGE)
                wait_for_full(pipe)
                assert not select.select([connection.socket], [], [], 0.05)[0]
                assert pipe.read() == LARGE
                assert connection.receipt() == b"\1"
            assert running.outcome().status == 0

    def test_a_slow_reader(self, shim: Shim, daemon: ScriptedDaemon) -> None:
        with prints_into_pipe(shim) as (running, pipe):
            connection, _ = daemon.take()
            with connection:
                connection.answer(0, LARGE[:200_000])
                assert b"".join(iter(lambda: pipe.read(777), b"")) == LARGE[:200_000]
                assert connection.receipt() == b"\1"
            assert running.outcome().status == 0

    def test_a_reader_that_never_reads(self, sanitized: Shim, daemon: ScriptedDaemon) -> None:
        with prints_into_pipe(sanitized) as (running, _):
            self.expect_no_delivery(running, daemon, "timed out, nothing reads it")

    def test_a_nonblocking_standard_output(self, shim: Shim, daemon: ScriptedDaemon) -> None:
        with prints_into_pipe(shim, os.O_NONBLOCK) as (running, pipe):
            connection, _ = daemon.take()
            with connection:
                connection.answer(0, LARGE)
                assert pipe.read() == LARGE
                assert connection.receipt() == b"\1"
            assert running.outcome().status == 0

    def expect_no_delivery(self, running: Running, daemon: ScriptedDaemon, cause: str) -> None:
        connection, _ = daemon.take()
        with connection:
            connection.answer(0, LARGE)
            outcome = running.outcome()
            assert connection.receipt() == b""
        assert outcome.status == 1
        assert outcome.stderr.decode() == f"contrail-k8s-cni: standard output: cannot be written: {cause}\n"

    def test_a_reader_that_closed_the_pipe(self, shim: Shim, daemon: ScriptedDaemon) -> None:
        with prints_into_pipe(shim) as (running, pipe):
            pipe.close()
            self.expect_no_delivery(running, daemon, "Broken pipe")

    def test_a_reader_that_closes_the_pipe_in_the_middle(self, shim: Shim, daemon: ScriptedDaemon) -> None:
        with prints_into_pipe(shim) as (running, pipe):
            connection, _ = daemon.take()
            with connection:
                connection.answer(0, LARGE)
                wait_for_full(pipe)
                pipe.close()
                assert connection.receipt() == b""
            assert running.outcome().status == 1

    def test_a_full_disk(self, shim: Shim, daemon: ScriptedDaemon) -> None:
        with open("/dev/full", "wb") as full, shim.started(ADD, stdout=full.fileno()) as running:
            self.expect_no_delivery(running, daemon, "No space left on device")

    @pytest.mark.parametrize("redirection", [">&-", "1</dev/null"])
    def test_a_closed_or_read_only_standard_output(self, shim: Shim, daemon: ScriptedDaemon, redirection: str) -> None:
        """The number of a closed standard output must not be reused for the connection to the daemon."""
        with shim.started(ADD, prefix=("sh", "-c", f'exec "$@" {redirection}', "sh")) as running:
            self.expect_no_delivery(running, daemon, "Bad file descriptor")

    def test_closed_standard_input_and_output(self, shim: Shim, daemon: ScriptedDaemon) -> None:
        with shim.started(ADD, prefix=("sh", "-c", 'exec "$@" <&- >&-', "sh")) as running:
            assert running.outcome().status == 1
        daemon.expect_nobody()

    def test_a_closed_standard_error_does_not_become_the_sandbox(self, shim: Shim, daemon: ScriptedDaemon) -> None:
        wrapped = ("sh", "-c", 'exec "$@" 2>&-', "sh")
        with shim.started({**ADD, "CNI_NETNS": "/proc/self/ns/net"}, prefix=wrapped) as running:
            with daemon.accept() as connection:
                connection.receive()
                assert not os.path.exists(f"/proc/{running.process.pid}/fd/2")
                connection.acknowledge()
                connection.answer(0, OUTPUT)
                assert connection.receipt() == b"\1"
            assert running.outcome().stdout == OUTPUT

    def test_an_error_that_cannot_be_written_is_exit_status_1(self, shim: Shim) -> None:
        with open("/dev/full", "wb") as full, shim.started(ADD, stdout=full.fileno()) as running:
            assert running.outcome().status == 1

    def test_a_daemon_that_closes_before_the_receipt(self, shim: Shim, daemon: ScriptedDaemon) -> None:
        with shim.started(ADD) as running:
            connection, _ = daemon.take()
            with connection:
                connection.answer(0, OUTPUT)
            assert running.outcome() == (0, OUTPUT, b"")

    def test_a_file_is_written_at_its_current_offset(self, shim: Shim, daemon: ScriptedDaemon) -> None:
        file = as_file(b"")
        with shim.started(ADD, stdout=file) as running:
            connection, _ = daemon.take()
            with connection:
                connection.answer(0, LARGE)
                assert connection.receipt() == b"\1"
            assert running.outcome().status == 0
        assert os.pread(file, len(LARGE) + 1, 0) == LARGE
        os.close(file)


class TestRuntimeKillsTheCall:
    @pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
    def test_the_daemon_notices_while_it_works(self, installed: Shim, daemon: ScriptedDaemon, by: int) -> None:
        with installed.started(ADD) as running:
            connection, _ = daemon.take()
            with connection:
                running.process.send_signal(by)
                assert connection.receipt() == b""
            assert running.process.wait(STEP_TIMEOUT) == -by

    def test_the_daemon_notices_while_the_output_is_not_read(self, installed: Shim, daemon: ScriptedDaemon) -> None:
        with prints_into_pipe(installed) as (running, pipe):
            connection, _ = daemon.take()
            with connection:
                connection.answer(0, LARGE)
                wait_for_full(pipe)
                running.process.kill()
                assert connection.receipt() == b""


class TestSignals:
    def test_interrupted_system_calls_are_repeated(self, installed: Shim, daemon: ScriptedDaemon) -> None:
        """Every second call of each kind fails with EINTR."""
        calls = "open,openat,poll,read,write,writev,connect,sendmsg"
        interrupted = ("strace", "-qq", "-o", "/dev/null", f"--inject={calls}:error=EINTR:when=1+2")
        config = b"c" * 200_000
        with installed.started({**ADD, "CNI_NETNS": "/proc/self/ns/net"}, config, prefix=interrupted) as running:
            connection, received = daemon.take()
            with connection:
                connection.answer(0, OUTPUT * 1000)
                assert connection.receipt() == b"\1"
            assert running.outcome() == (0, OUTPUT * 1000, b"")
        assert (received.stdin, received.netns) == (config, identity("/proc/self/ns/net"))

    def test_many_signals(self, installed: Shim, daemon: ScriptedDaemon) -> None:
        """The process is stopped and continued all the time, which interrupts waits with a timeout."""
        with installed.started(ADD, b"c" * 200_000) as running:
            connection, _ = daemon.take()
            with connection:
                for part in range(200):
                    running.process.send_signal(signal.SIGSTOP)
                    if part == 100:
                        connection.answer(0, OUTPUT)
                    running.process.send_signal(signal.SIGCONT)
                assert connection.receipt() == b"\1"
            assert running.outcome() == (0, OUTPUT, b"")

    def test_many_signals_do_not_extend_the_deadline(self, sanitized: Shim, daemon: ScriptedDaemon) -> None:
        with sanitized.started(ADD) as running:
            connection, _ = daemon.take()
            began = time.monotonic()
            with connection:
                while running.process.poll() is None:
                    running.process.send_signal(signal.SIGSTOP)
                    running.process.send_signal(signal.SIGCONT)
                    assert time.monotonic() - began < STEP_TIMEOUT
            assert json.loads(running.outcome().stdout)["code"] == 11


@contextmanager
def prints_into_pipe(shim: Shim, flags: int = 0) -> Iterator[tuple[Running, FileIO]]:
    """Yields a call and the end of the pipe that its runtime reads."""
    reader, writer = os.pipe2(flags)
    os.set_blocking(reader, True)
    with FileIO(reader) as pipe, shim.started(ADD, stdout=writer) as running:
        os.close(writer)
        yield running, pipe


def wait_for_full(pipe: FileIO) -> None:
    """Polls until the pipe is full: there is no event for that."""
    until(lambda: bytes_in(pipe) >= PIPE_SIZE)


def bytes_in(pipe: FileIO) -> int:
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]
