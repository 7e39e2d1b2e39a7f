"""The shim binds namespaces of networks on its host for the daemon: these and nothing else."""

import contextlib
import errno
import json
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cni_contrail.datapath.namespaces import new_namespace
from tests.e2e.host import Host, temporary_host
from tests.support.shim import ADD, ANSWER, STEP_TIMEOUT, Connection, Running, ScriptedDaemon, Shim, identity

NAME = "contrail-7"
RESULT = b"{}\n"
PIN = 2
REPLY = struct.Struct(">I")
CONTAINER = ("unshare", "--mount", "--propagation", "slave")


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with temporary_host() as host:
        yield host


@pytest.fixture
def entry(host: Host) -> Iterator[Path]:
    """The entry of the network on the host, as the test sees it."""
    path = host.path(f"/run/netns/{NAME}")
    yield path
    host.call("umount", "--quiet", f"/run/netns/{NAME}")
    host.call("rm", "--recursive", "--force", f"/run/netns/{NAME}")


@pytest.fixture
def netns() -> Iterator[int]:
    created = new_namespace()
    yield created
    os.close(created)


@contextlib.contextmanager
def called(
    host: Host, shim: Shim, daemon: ScriptedDaemon, *, command: str = "ADD", within: tuple[str, ...] = ()
) -> Iterator[tuple[Running, Connection]]:
    """Starts a call on the host, which the daemon has acknowledged."""
    with shim.started({**ADD, "CNI_COMMAND": command}, b"{}", prefix=(*host.enter, *within)) as running:
        connection, _ = daemon.take()
        with connection:
            yield running, connection


def ask(connection: Connection, name: bytes, *descriptors: int, size: int | None = None) -> None:
    message = ANSWER.pack(PIN, len(name) if size is None else size) + name
    socket.send_fds(connection.socket, [message], descriptors)


def reply(connection: Connection) -> int:
    data = connection.socket.recv(REPLY.size, socket.MSG_WAITALL)
    (number,) = REPLY.unpack(data)
    return int(number)


def end(running: Running, connection: Connection) -> None:
    connection.answer(0, RESULT)
    assert connection.receipt() == b"\1"
    assert running.outcome() == (0, RESULT, b"")


def mounts(host: Host) -> list[str]:
    lines = host.path("/proc/1/mountinfo").read_text().splitlines()
    return [line for line in lines if line.split()[4].startswith("/run/netns/")]


def test_a_namespace_is_bound_before_the_result_is_printed(
    host: Host, shim: Shim, daemon: ScriptedDaemon, netns: int, entry: Path
) -> None:
    with called(host, shim, daemon) as (running, connection):
        ask(connection, NAME.encode(), netns)
        assert reply(connection) == 0
        assert identity(str(entry)) == identity(netns)
        end(running, connection)
    assert len(mounts(host)) == 1


def test_several_namespaces_are_bound_one_after_the_other(
    host: Host, shim: Shim, daemon: ScriptedDaemon, netns: int, entry: Path
) -> None:
    names = [f"contrail-{number}" for number in (8, 9, 16777215)]
    with called(host, shim, daemon) as (running, connection):
        for name in names:
            ask(connection, name.encode(), netns)
            assert reply(connection) == 0
        end(running, connection)
    assert {line.split()[4] for line in mounts(host)} == {f"/run/netns/{name}" for name in names}
    for name in names:
        host.run("ip", "netns", "delete", name)


def test_a_namespace_that_is_bound_already_stays(
    host: Host, shim: Shim, daemon: ScriptedDaemon, netns: int, entry: Path
) -> None:
    host.run("ip", "netns", "add", NAME)
    before = identity(str(entry))
    with called(host, shim, daemon) as (running, connection):
        ask(connection, NAME.encode(), netns)
        assert reply(connection) == 0
        end(running, connection)
    assert identity(str(entry)) == before != identity(netns)
    assert len(mounts(host)) == 1


def test_a_file_without_a_mount_is_used(
    host: Host, shim: Shim, daemon: ScriptedDaemon, netns: int, entry: Path
) -> None:
    entry.touch()
    with called(host, shim, daemon) as (running, connection):
        ask(connection, NAME.encode(), netns)
        assert reply(connection) == 0
        end(running, connection)
    assert identity(str(entry)) == identity(netns)


def test_a_shim_in_a_container_binds_on_the_host(
    host: Host, shim: Shim, daemon: ScriptedDaemon, netns: int, entry: Path
) -> None:
    with called(host, shim, daemon, within=CONTAINER) as (running, connection):
        ask(connection, NAME.encode(), netns)
        assert reply(connection) == 0
        end(running, connection)
    assert identity(str(entry)) == identity(netns)


def test_a_link_in_place_of_the_file_is_not_followed(
    host: Host, shim: Shim, daemon: ScriptedDaemon, netns: int, entry: Path, tmp_path: Path
) -> None:
    entry.symlink_to(tmp_path / "elsewhere")
    with called(host, shim, daemon) as (running, connection):
        ask(connection, NAME.encode(), netns)
        assert reply(connection) == errno.ELOOP
        end(running, connection)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_in_place_of_the_file_is_an_error(
    host: Host, shim: Shim, daemon: ScriptedDaemon, netns: int, entry: Path
) -> None:
    entry.mkdir()
    with called(host, shim, daemon) as (running, connection):
        ask(connection, NAME.encode(), netns)
        assert reply(connection) == errno.EISDIR
        end(running, connection)
    assert mounts(host) == []


def test_another_process_that_holds_the_directory_is_awaited(
    host: Host, shim: Shim, daemon: ScriptedDaemon, netns: int, entry: Path
) -> None:
    lock = host.start("flock", "/run/netns", "sh", "-c", "echo locked; read _", stdin=-1, stdout=-1)
    assert lock.stdin
    assert lock.stdout
    assert lock.stdout.readline() == "locked\n"
    with lock, called(host, shim, daemon) as (running, connection):
        ask(connection, NAME.encode(), netns)
        assert not entry.exists()
        lock.stdin.close()
        assert reply(connection) == 0
        end(running, connection)
    assert identity(str(entry)) == identity(netns)


def test_a_directory_that_stays_locked_is_an_error(
    host: Host, sanitized: Shim, daemon: ScriptedDaemon, netns: int, entry: Path
) -> None:
    with (
        host.start("flock", "/run/netns", "sh", "-c", "echo locked; read _", stdin=-1, stdout=-1) as lock,
        called(host, sanitized, daemon) as (running, connection),
    ):
        assert lock.stdout
        assert lock.stdout.readline() == "locked\n"
        ask(connection, NAME.encode(), netns)
        assert reply(connection) == errno.EWOULDBLOCK
        end(running, connection)
        assert lock.stdin
        lock.stdin.close()
    assert not entry.exists()


HOSTILE_NAMES = [
    b"",
    b"contrail-",
    b"contrail-0",
    b"contrail-07",
    b"contrail-x",
    b"contrail-7x",
    b"contrail-7/..",
    b"contrail-7\0",
    b"contrail-/../x",
    b"../contrail-7",
    b"contrail-123456789",
    b"contrail--7",
    b"other-7",
    b"\xff" * 17,
]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_other_names_are_rejected(host: Host, shim: Shim, daemon: ScriptedDaemon, netns: int, name: bytes) -> None:
    with called(host, shim, daemon) as (running, connection):
        ask(connection, name, netns)
        assert connection.receipt() == b""
        assert violation(running)
    assert mounts(host) == []
    assert os.listdir(host.path("/run/netns")) == []


@pytest.mark.parametrize("size", [18, 4096, 2**32 - 1])
def test_long_names_are_rejected_before_they_are_read(
    host: Host, shim: Shim, daemon: ScriptedDaemon, netns: int, size: int
) -> None:
    with called(host, shim, daemon) as (running, connection):
        ask(connection, NAME.encode(), netns, size=size)
        assert connection.receipt() == b""
        assert violation(running)


@pytest.mark.parametrize("path", ["/dev/null", "/proc/self/ns/mnt", "/proc/self/ns/user", "/", None])
def test_what_is_no_network_namespace_is_rejected(
    host: Host, shim: Shim, daemon: ScriptedDaemon, path: str | None
) -> None:
    with contextlib.ExitStack() as stack:
        descriptors = [] if path is None else [os.open(path, os.O_RDONLY)]
        for descriptor in descriptors:
            stack.callback(os.close, descriptor)
        running, connection = stack.enter_context(called(host, shim, daemon))
        ask(connection, NAME.encode(), *descriptors)
        assert connection.receipt() == b""
        assert violation(running)
    assert os.listdir(host.path("/run/netns")) == []


@pytest.mark.parametrize("command", ["DEL", "CHECK", "GC"])
def test_only_add_binds(host: Host, shim: Shim, daemon: ScriptedDaemon, netns: int, command: str) -> None:
    with called(host, shim, daemon, command=command) as (running, connection):
        ask(connection, NAME.encode(), netns)
        assert connection.receipt() == b""
        assert violation(running)
    assert os.listdir(host.path("/run/netns")) == []


def test_a_daemon_that_ends_after_its_request_is_reported(
    host: Host, shim: Shim, daemon: ScriptedDaemon, netns: int, entry: Path
) -> None:
    with called(host, shim, daemon) as (running, connection):
        ask(connection, NAME.encode(), netns)
        connection.socket.close()
        outcome = running.outcome()
    assert json.loads(outcome.stdout)["code"] == 11
    assert entry.exists()


def test_endless_requests_end_with_the_time_for_the_answer(
    host: Host, sanitized: Shim, daemon: ScriptedDaemon, netns: int, entry: Path
) -> None:
    with called(host, sanitized, daemon) as (running, connection):
        connection.socket.settimeout(STEP_TIMEOUT)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while True:
                ask(connection, NAME.encode(), netns)
                if not connection.socket.recv(REPLY.size):
                    break
        assert json.loads(running.outcome().stdout)["code"] == 11


def violation(running: Running) -> bool:
    document: dict[str, Any] = json.loads(running.outcome().stdout)
    return document["code"] == 107 and "violates the protocol" in document["msg"]
