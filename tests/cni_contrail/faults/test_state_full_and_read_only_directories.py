"""A state directory that cannot be written: nothing is created without a record, and removal still works."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cni_contrail.conftest import SMALL_DISK, Attach
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import ReceivedRequest, ScriptedAgent, ServePod

PAGE = 4096


@pytest.fixture(autouse=True)
def state(plugin: Plugin, small_disk: Path) -> Path:
    plugin.state_dir = small_disk / "state"
    plugin.settings["state-dir"] = str(plugin.state_dir)
    return plugin.state_dir


def fill(disk: Path, *, free_pages: int = 0) -> Callable[[], None]:
    """Leaves only so many pages free; returns a function that frees the rest."""
    filler = disk / "filler"
    filler.write_bytes(b"x" * (SMALL_DISK - used(disk) - free_pages * PAGE))
    return filler.unlink


def used(disk: Path) -> int:
    return sum(-(-path.stat().st_size // PAGE) * PAGE for path in disk.rglob("*") if path.is_file())


def remount(disk: Path, mode: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{mode}", str(disk)], check=True)


class TestFull:
    @pytest.mark.parametrize("free_pages", [0, 1])
    def test_add_names_the_file_and_leaves_nothing(
        self,
        agent: ScriptedAgent,
        plugin: Plugin,
        pod: PodSandbox,
        sandbox: Netns,
        serve_pod: ServePod,
        small_disk: Path,
        free_pages: int,
    ) -> None:
        """There is no space for the first record, or for its replacement, written before the first link is created."""
        serve_pod(agent, 3)
        free = fill(small_disk, free_pages=free_pages)
        message = plugin.add(pod).failed(5)
        assert message == f"{plugin.record_path(pod)}: cannot write: No space left on device"
        assert (plugin.node.links(), sandbox.links(), plugin.files(), agent.ports) == ([], [], [], {})
        free()
        plugin.add(pod).succeeded()

    @pytest.mark.parametrize("inodes", range(1, 8))
    def test_add_without_a_free_inode_leaves_nothing(
        self,
        agent: ScriptedAgent,
        plugin: Plugin,
        pod: PodSandbox,
        sandbox: Netns,
        serve_pod: ServePod,
        small_disk: Path,
        inodes: int,
    ) -> None:
        serve_pod(agent, 2)
        remount(small_disk, f"nr_inodes={inodes}")
        outcome = plugin.add(pod)
        if outcome.status:
            assert "No space left on device" in outcome.failed(5)
            assert (plugin.node.links(), sandbox.links(), plugin.files(), agent.ports) == ([], [], [], {})
        plugin.delete(pod).succeeded()
        assert (plugin.node.links(), plugin.files(), agent.ports) == ([], [], {})

    def test_it_becomes_full_while_the_links_are_created(
        self,
        agent: ScriptedAgent,
        plugin: Plugin,
        pod: PodSandbox,
        sandbox: Netns,
        serve_pod: ServePod,
        small_disk: Path,
    ) -> None:
        """There is no space to mark the record as finished: everything is rolled back."""
        serve_pod(agent, 2)

        def fill_it(seen: ReceivedRequest) -> None:
            if seen.method == "POST":
                fill(small_disk)

        agent.before(fill_it)
        plugin.add(pod).failed(5)
        assert (plugin.node.links(), sandbox.links(), plugin.files(), agent.ports) == ([], [], [], {})

    def test_del_and_gc_need_no_space(
        self, agent: ScriptedAgent, plugin: Plugin, attach: Attach, small_disk: Path
    ) -> None:
        pods = [attach(agent, name, interfaces=2) for name in ("a", "b")]
        fill(small_disk)
        plugin.delete(pods[0]).succeeded()
        plugin.gc([]).succeeded()
        assert (plugin.node.links(), plugin.files(), agent.ports) == ([], [], {})

    def test_del_without_the_agent_logs_the_notification_that_it_cannot_store(
        self, agent: ScriptedAgent, plugin: Plugin, attach: Attach, small_disk: Path
    ) -> None:
        """The agent notices by itself that the port's device is gone."""
        pod = attach(agent, "a")
        fill(small_disk)
        agent.stop()
        assert "dropping a notification" in plugin.delete(pod).succeeded().stderr
        assert (plugin.node.links(), plugin.files()) == ([], [])


class TestReadOnly:
    def test_add_fails_and_leaves_nothing(
        self,
        agent: ScriptedAgent,
        plugin: Plugin,
        pod: PodSandbox,
        sandbox: Netns,
        serve_pod: ServePod,
        small_disk: Path,
    ) -> None:
        serve_pod(agent, 2)
        remount(small_disk, "ro")
        assert "Read-only file system" in plugin.add(pod).failed(5)
        assert (plugin.node.links(), sandbox.links(), agent.ports) == ([], [], {})

    def test_del_removes_the_links_and_names_the_record_that_stays(
        self, agent: ScriptedAgent, plugin: Plugin, attach: Attach, small_disk: Path
    ) -> None:
        pod = attach(agent, "a", interfaces=2)
        remount(small_disk, "ro")
        message = plugin.delete(pod).failed(5)
        assert message == f"{plugin.record_path(pod)}: cannot remove: Read-only file system"
        assert (plugin.node.links(), agent.ports) == ([], {})
        remount(small_disk, "rw")
        plugin.delete(pod).succeeded()
        assert plugin.files() == []

    def test_gc_names_every_record_that_stays(
        self, agent: ScriptedAgent, plugin: Plugin, attach: Attach, small_disk: Path
    ) -> None:
        pods = [attach(agent, name) for name in ("a", "b")]
        remount(small_disk, "ro")
        message = plugin.gc([]).failed(5)
        assert all(str(plugin.record_path(pod)) in message for pod in pods)
        assert plugin.node.links() == []

    def test_check_writes_nothing(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, small_disk: Path
    ) -> None:
        serve_pod(agent, 2)
        result = plugin.add(pod).succeeded().document
        remount(small_disk, "ro")
        plugin.check(pod, previous=result).succeeded()

    def test_del_without_an_add_succeeds(self, plugin: Plugin, pod: PodSandbox, small_disk: Path) -> None:
        remount(small_disk, "ro")
        plugin.delete(pod).succeeded()
