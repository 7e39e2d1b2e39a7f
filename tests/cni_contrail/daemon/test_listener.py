"""The Unix socket: only for root, exclusive to one daemon, replaces a stale one, and is unlinked at exit."""

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.plugin_callers import await_listener

COMMAND = [str(Path(sys.executable).parent / "contrail-cnid")]

Start = Callable[[], "subprocess.Popen[str]"]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory with a path short enough for a Unix socket."""
    with tempfile.TemporaryDirectory(prefix="ct-") as name:
        yield Path(name)


@pytest.fixture
def path(folder: Path) -> str:
    return str(folder / "made" / "cni.sock")


@pytest.fixture
def start(folder: Path, path: str) -> Iterator[Start]:
    file = folder / "cnid.yaml"
    file.write_text(f"socket: {path}\nstate-dir: {folder}/state\nagent-socket: {folder}/agent.sock\n")
    environment = {**os.environ, "CONTRAIL_CNI_CONFIG": str(folder / "none.json")}
    with ExitStack() as running:

        def start() -> "subprocess.Popen[str]":
            process = subprocess.Popen([*COMMAND, "--config", str(file)], env=environment, stderr=-1, text=True)
            running.enter_context(process)
            running.callback(process.kill)
            return process

        yield start


def outcome(process: "subprocess.Popen[str]") -> tuple[int, str]:
    _, stderr = process.communicate(timeout=20)
    return process.returncode, stderr


def terminated(process: "subprocess.Popen[str]") -> int:
    process.terminate()
    return outcome(process)[0]


def test_only_root_can_access_the_socket(start: Start, path: str) -> None:
    process = start()
    await_listener(path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    assert terminated(process) == 0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_the_socket_is_unlinked_at_exit(start: Start, path: str, how: signal.Signals) -> None:
    process = start()
    await_listener(path)
    process.send_signal(how)
    status, stderr = outcome(process)
    assert (status, os.path.exists(path)) == (0, False)
    assert "contrail-cnid has stopped" in stderr


def test_a_second_daemon_fails_to_start_and_the_first_continues(start: Start, path: str) -> None:
    first = start()
    await_listener(path)
    assert outcome(start()) == (2, f"contrail-cnid: socket {path}: in use by another daemon\n")
    await_listener(path)
    assert terminated(first) == 0


def test_a_stale_socket_is_replaced(start: Start, path: str) -> None:
    killed = start()
    await_listener(path)
    killed.kill()
    outcome(killed)
    assert os.path.exists(path)
    process = start()
    await_listener(path)
    assert terminated(process) == 0


def test_a_foreign_socket_at_the_path_is_not_unlinked(start: Start, path: str) -> None:
    process = start()
    await_listener(path)
    os.unlink(path)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(path)
        assert terminated(process) == 0
        assert os.path.exists(path)


def test_a_regular_file_at_the_path_is_not_removed(start: Start, path: str) -> None:
    os.mkdir(os.path.dirname(path))
    Path(path).write_text("kept")
    assert outcome(start()) == (2, f"contrail-cnid: socket {path}: exists and is not a socket\n")
    assert Path(path).read_text() == "kept"


@pytest.mark.parametrize(("owner", "mode"), [(0, 0o777), (0, 0o720), (65534, 0o700)])
def test_a_directory_writable_by_others_is_rejected(start: Start, path: str, owner: int, mode: int) -> None:
    directory = os.path.dirname(path)
    os.mkdir(directory)
    os.chown(directory, owner, -1)
    os.chmod(directory, mode)
    problem = f"directory {directory} must be owned by root and writable by root only"
    message = f"contrail-cnid: socket {path}: {problem}\n"
    assert outcome(start()) == (2, message)
