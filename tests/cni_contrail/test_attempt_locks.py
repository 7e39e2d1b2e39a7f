"""Attempt locks: whether the ADD that wrote a record still runs."""

import contextlib
import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cni_contrail.errors import Code, PluginError
from cni_contrail.state.attempt_locks import is_attempt_running, lock_attempt

attempts = st.binary(min_size=8, max_size=8).map(bytes.hex)

OWNER = """
import sys
from cni_contrail.state.attempt_locks import lock_attempt
lock_attempt(sys.argv[1], sys.argv[2])
print("locked", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def attempt_lock(directory: str, attempt: str) -> Iterator[None]:
    descriptor = lock_attempt(directory, attempt)
    try:
        yield
    finally:
        os.close(descriptor)


@pytest.fixture
def other_process(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of attempt 00..05 until its input ends."""
    command = [sys.executable, "-c", OWNER, str(tmp_path), "05".rjust(16, "0")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    yield process
    process.communicate(timeout=10)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(attempts, attempts)
def test_an_attempt_runs_while_its_lock_is_held_and_no_other_does(tmp_path: Path, attempt: str, other: str) -> None:
    directory = str(tmp_path)
    assert not is_attempt_running(directory, attempt)
    with attempt_lock(directory, attempt):
        assert is_attempt_running(directory, attempt)
        assert is_attempt_running(directory, other) == (int(other, 16) >> 2 == int(attempt, 16) >> 2)
    assert not is_attempt_running(directory, attempt)


def test_the_lock_is_visible_to_other_processes_and_ends_with_its_own(
    tmp_path: Path, other_process: subprocess.Popen[str]
) -> None:
    assert is_attempt_running(str(tmp_path), "05".rjust(16, "0"))
    other_process.kill()
    other_process.wait(10)
    assert not is_attempt_running(str(tmp_path), "05".rjust(16, "0"))


def test_threads_of_one_process_hold_separate_locks(tmp_path: Path) -> None:
    """As calls of the daemon: the end of one does not release the others."""
    directory, first, second = str(tmp_path), "a" * 16, "b" * 16
    release = threading.Event()
    held = threading.Event()

    def hold() -> None:
        with attempt_lock(directory, first):
            held.set()
            release.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(10)
    with attempt_lock(directory, second):
        assert is_attempt_running(directory, first)
        assert is_attempt_running(directory, second)
    assert is_attempt_running(directory, first)
    assert not is_attempt_running(directory, second)
    release.set()
    thread.join(10)
    assert not is_attempt_running(directory, first)


def test_it_is_independent_of_a_flock_on_the_directory(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        with attempt_lock(str(tmp_path), "a" * 16):
            assert is_attempt_running(str(tmp_path), "a" * 16)
    finally:
        os.close(descriptor)


def test_it_leaves_no_file(tmp_path: Path) -> None:
    with attempt_lock(str(tmp_path / "state"), "a" * 16):
        pass
    assert list((tmp_path / "state").iterdir()) == []


def test_a_directory_that_cannot_be_created_is_an_error() -> None:
    with pytest.raises(PluginError, match="/proc/none: cannot create") as caught, attempt_lock("/proc/none", "a" * 16):
        pass
    assert caught.value.code == Code.IO_FAILURE
