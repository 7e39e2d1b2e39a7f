"""Environment, configuration and sandbox are forwarded unchanged; the response is printed unchanged."""

import ctypes
import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.netns import Netns
from tests.support.shim import ADD, ANSWER, Received, ScriptedDaemon, Shim, identity

CONFIG = b'{"cniVersion": "1.0.0", "name": "net", "type": "contrail-k8s-cni"}'
ENVIRONMENT_LIMIT, INPUT_LIMIT, OUTPUT_LIMIT = 64 * 1024, 1024 * 1024, 1024 * 1024


def forwarded(
    shim: Shim, daemon: ScriptedDaemon, environment: dict[str, str] | dict[bytes, bytes], stdin: bytes = CONFIG
) -> Received:
    """Returns the request as received by a daemon that responds with success."""
    with shim.started(environment, stdin) as running:
        connection, received = daemon.take()
        with connection:
            connection.answer(0, b"")
            assert connection.receipt() == b"\1"
        assert running.outcome() == (0, b"", b"")
    return received


@pytest.fixture
def sandbox(make_netns: Callable[[str], Netns]) -> Netns:
    return make_netns("pod")


def test_environment_sandbox_and_input_are_forwarded(shim: Shim, daemon: ScriptedDaemon, sandbox: Netns) -> None:
    environment = {**ADD, "CNI_IFNAME": "eth0", "CNI_NETNS": sandbox.path, "CNI_ARGS": "", "PATH": "/bin", "CN": "x"}
    received = forwarded(shim, daemon, environment)
    assert received.version == 2
    assert received.netns == identity(sandbox.path)
    assert sorted(received.variables) == sorted(
        [b"CNI_COMMAND=ADD", b"CNI_IFNAME=eth0", f"CNI_NETNS={sandbox.path}".encode(), b"CNI_ARGS="]
    )
    assert received.stdin == CONFIG


@pytest.mark.parametrize("command", ["ADD", "DEL", "CHECK", "GC", "STATUS", "add", "VERSION2", " "])
def test_every_command_but_version_is_forwarded(shim: Shim, daemon: ScriptedDaemon, command: str) -> None:
    assert forwarded(shim, daemon, {"CNI_COMMAND": command}).variables == [f"CNI_COMMAND={command}".encode()]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/run/netns/not-there", errno.ENOENT),
        ("/etc/hostname/x", errno.ENOTDIR),
        ("/" + "x" * 300, errno.ENAMETOOLONG),
        ("/run/netns/\udcff", errno.ENOENT),
    ],
)
def test_a_sandbox_that_cannot_be_opened_is_sent_as_its_errno(
    shim: Shim, daemon: ScriptedDaemon, path: str, problem: int
) -> None:
    assert forwarded(shim, daemon, {**ADD, "CNI_NETNS": path}).netns == problem


@pytest.mark.parametrize("environment", [ADD, {**ADD, "CNI_NETNS": ""}], ids=["unset", "empty"])
def test_a_call_without_cni_netns_is_sent_as_minus_one(
    shim: Shim, daemon: ScriptedDaemon, environment: dict[str, str]
) -> None:
    assert forwarded(shim, daemon, environment).netns == -1


def test_a_fifo_as_sandbox_does_not_block(shim: Shim, daemon: ScriptedDaemon, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert forwarded(shim, daemon, {**ADD, "CNI_NETNS": str(pipe)}).netns == identity(str(pipe))


def test_only_cni_variables_are_forwarded(shim: Shim, daemon: ScriptedDaemon) -> None:
    ours = {f"CNI_{number}": "x" for number in range(5000)}
    others = {f"OTHER_{number}": "CNI_" * 20 for number in range(2000)}
    received = forwarded(shim, daemon, {**ADD, **ours, **others})
    assert {each.decode() for each in received.variables} == {"CNI_COMMAND=ADD", *(f"{key}=x" for key in ours)}


def test_values_of_any_bytes_are_forwarded(shim: Shim, daemon: ScriptedDaemon) -> None:
    value = bytes(range(1, 256))
    received = forwarded(shim, daemon, {b"CNI_COMMAND": b"ADD", b"CNI_ARGS": value}, bytes(range(256)))
    assert b"CNI_ARGS=" + value in received.variables
    assert received.stdin == bytes(range(256))


def test_the_environment_is_forwarded_in_order_with_duplicates(installed: Shim, daemon: ScriptedDaemon) -> None:
    raw = [b"CNI_B=1", b"CNI_COMMAND", b"CNI_COMMAND=ADD", b"=CNI_", b"CNI_B=2", b"CNI_=", b"XCNI_=1", b""]
    raw.append(b"CONTRAIL_CNI_SOCKET=" + installed.socket_path.encode())
    pid = spawn_raw(installed.binary, raw)
    connection, received = daemon.take()
    with connection:
        connection.answer(0, b"")
        assert connection.receipt() == b"\1"
    assert os.waitpid(pid, 0)[1] == 0
    assert received.variables == [b"CNI_B=1", b"CNI_COMMAND=ADD", b"CNI_B=2", b"CNI_="]


def spawn_raw(binary: str, environment: list[bytes]) -> int:
    """Starts a program with exactly these strings as its environment and returns its process ID."""
    arguments = (ctypes.c_char_p * 2)(binary.encode(), None)
    strings = (ctypes.c_char_p * (len(environment) + 1))(*environment, None)
    pid = ctypes.c_int()
    assert ctypes.CDLL(None).posix_spawn(ctypes.byref(pid), binary.encode(), None, None, arguments, strings) == 0
    return pid.value


def test_the_largest_inputs_are_forwarded(shim: Shim, daemon: ScriptedDaemon) -> None:
    room = ENVIRONMENT_LIMIT - len("CNI_COMMAND=ADD\0CNI_ARGS=\0")
    received = forwarded(shim, daemon, {**ADD, "CNI_ARGS": "x" * room}, b"y" * INPUT_LIMIT)
    assert len(received.environment) == ENVIRONMENT_LIMIT
    assert received.stdin == b"y" * INPUT_LIMIT


def test_input_written_in_pieces_is_forwarded(shim: Shim, daemon: ScriptedDaemon) -> None:
    reader, writer = os.pipe()
    with shim.started(ADD, reader) as running:
        os.close(reader)
        for each in (b"a", b"b" * 10, b"", b"c" * 70000):
            os.write(writer, each)
        os.close(writer)
        connection, received = daemon.take()
        with connection:
            connection.answer(0, b"")
        assert running.outcome().status == 0
    assert received.stdin == b"a" + b"b" * 10 + b"c" * 70000


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 65536, OUTPUT_LIMIT])
@pytest.mark.parametrize("status", [0, 1])
def test_exit_status_and_output_come_from_the_daemon(
    shim: Shim, daemon: ScriptedDaemon, status: int, size: int
) -> None:
    output = os.urandom(size)
    with shim.started(ADD) as running:
        connection, _ = daemon.take()
        with connection:
            connection.answer(status, output)
            assert running.outcome() == (status, output, b"")
            assert connection.receipt() == b"\1"


def test_the_error_of_a_daemon_of_another_version_is_printed(shim: Shim, daemon: ScriptedDaemon) -> None:
    rejection = b'{"cniVersion": "1.1.0", "code": 107, "msg": "protocol 1 of the shim, 2 of the daemon"}\n'
    with shim.started(ADD, b"x" * 500_000) as running:
        with daemon.accept() as connection:
            connection.socket.recv(20)  # it knows enough, and reads no more
            connection.acknowledge()
            connection.answer(1, rejection)
        assert running.outcome() == (1, rejection, b"")


def test_descriptors_from_the_daemon_are_not_accepted(shim: Shim, daemon: ScriptedDaemon) -> None:
    """The kernel closes descriptors that the receiver does not request: end of file on the pipe shows that it did."""
    reader, writer = os.pipe()
    with shim.started(ADD) as running:
        connection, _ = daemon.take()
        with connection:
            socket.send_fds(connection.socket, [ANSWER.pack(0, 1)], [writer])
            os.close(writer)
            assert os.read(reader, 1) == b""
            connection.socket.sendall(b"x")
        assert running.outcome() == (0, b"x", b"")
    os.close(reader)
