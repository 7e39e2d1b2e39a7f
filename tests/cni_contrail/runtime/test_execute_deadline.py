"""An operation ends at its deadline, and all processes of a killed plugin end."""

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cni_contrail.runtime.chain import Runtime
from cni_contrail.runtime.errors import PluginTimeoutError
from tests.support.scripted_plugins import POD, Plugins, added, network

SLEEPER = """#!/bin/sh
sleep 300 &
echo $! > {directory}/child
echo > {directory}/started
wait
"""


def ends(pid: int, *, within: float) -> bool:
    """Returns whether a process ends within that many seconds."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with open(descriptor, "rb", buffering=0) as process:
        return bool(select.select([process], [], [], within)[0])


@pytest.fixture
def sleeper(plugins: Plugins) -> Path:
    """A plugin that starts a child and waits for it; it writes a line to its FIFO when the child runs."""
    os.mkfifo(plugins.directory / "started")
    plugins.write("bridge", SLEEPER.format(directory=plugins.directory))
    return plugins.directory


@contextlib.contextmanager
def both_ends(fifo: Path) -> Iterator[None]:
    """Holds a FIFO open, so that its writer does not block."""
    descriptor = os.open(fifo, os.O_RDWR)
    yield
    os.close(descriptor)


def test_the_plugin_and_its_children_are_killed(make_runtime: Callable[..., Runtime], sleeper: Path) -> None:
    with both_ends(sleeper / "started"):
        began = time.monotonic()
        with pytest.raises(PluginTimeoutError, match=rf"plugin {sleeper}/bridge: timed out and was killed"):
            make_runtime(timeout=0.3).add(network("bridge"), POD)
    assert time.monotonic() - began < 5
    assert ends(int((sleeper / "child").read_text()), within=5)


def test_an_interrupt_kills_the_plugin(runtime: Runtime, sleeper: Path) -> None:
    def interrupt_when_started() -> None:
        with open(sleeper / "started", "rb") as started:
            started.readline()
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=interrupt_when_started)
    watcher.start()
    with pytest.raises(KeyboardInterrupt):
        runtime.add(network("bridge"), POD)
    watcher.join()
    assert ends(int((sleeper / "child").read_text()), within=5)


def test_an_interrupt_while_the_plugin_starts_kills_it(
    runtime: Runtime, plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins.write("bridge", "#!/bin/sh\nexec sleep 300\n")
    started: list[subprocess.Popen[bytes]] = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        runtime.add(network("bridge"), POD)
    assert started[0].returncode == -signal.SIGKILL


def test_one_deadline_applies_to_the_whole_chain(make_runtime: Callable[..., Runtime], plugins: Plugins) -> None:
    plugins.script("quick", ADD=added())
    plugins.write("slow", "#!/bin/sh\nexec sleep 300\n")
    with pytest.raises(PluginTimeoutError, match="slow"):
        make_runtime(timeout=0.5).add(network("quick", "slow", "never"), POD)
    assert [call.plugin for call in plugins.calls()] == ["quick"]


def test_a_process_left_running_after_a_success_is_not_killed(runtime: Runtime, plugins: Plugins) -> None:
    daemon = plugins.directory / "daemon"
    plugins.write("bridge", f"#!/bin/sh\nsleep 300 > /dev/null 2>&1 &\necho $! > {daemon}\necho '{{}}'\n")
    runtime.add(network("bridge"), POD)
    pid = int(daemon.read_text())
    assert not ends(pid, within=0)
    os.kill(pid, signal.SIGKILL)
