"""The keeper installs everything, the list last and when the node is ready, and puts back what others change."""

import contextlib
import itertools
import json
import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cni_contrail.errors import PluginError
from cni_contrail.installer.errors import DirectoryGoneError
from cni_contrail.installer.lock import installer_lock
from cni_contrail.installer.report import Report, read_report
from tests.cni_contrail.conftest import SMALL_DISK
from tests.cni_contrail.installer.conftest import (
    ALL,
    CONFLIST,
    LOOPBACK,
    OUR_LOOPBACK,
    PLUGIN,
    SETTINGS,
    InstallerNode,
    network_list,
)
from tests.support.scripted_agents import ScriptedAgent

DONE = Report("install", done=True)


def test_all_is_where_runtime_and_plugin_look_for_it(installer_node: InstallerNode) -> None:
    for _ in range(2):
        assert installer_node.look() == DONE
        assert installer_node.files() == ALL
    modes = {name: installer_node.path(name).stat().st_mode & 0o777 for name in ALL}
    assert modes == {PLUGIN: 0o755, LOOPBACK: 0o755, OUR_LOOPBACK: 0o755, SETTINGS: 0o600, CONFLIST: 0o600}
    assert installer_node.path(CONFLIST).read_text() == network_list()


class TestReadiness:
    def test_the_list_waits_for_the_daemon(self, installer_node: InstallerNode) -> None:
        installer_node.set_ready(is_ready=False)
        keeper = installer_node.keeper()
        for _ in range(2):
            keeper.look()
            assert installer_node.reported() == Report(
                "install", waiting="plugin contrail-k8s-cni failed (STATUS): no daemon (code 50)"
            )
            assert installer_node.files() == [name for name in ALL if name != CONFLIST]
        installer_node.set_ready()
        keeper.look()
        assert installer_node.reported() == DONE
        assert installer_node.files() == ALL

    @pytest.mark.parametrize(
        ("report", "reason"),
        [
            (None, "datapath: contrail-cnid has not reported on it yet"),
            ({"problems": {"0": "no nf_tables"}}, "datapath: index 0: no nf_tables"),
            ([], "datapath: the agent's report is malformed: list indices must be integers or slices, not str"),
        ],
    )
    def test_the_list_waits_for_the_datapath(self, installer_node: InstallerNode, report: object, reason: str) -> None:
        installer_node.report = report
        assert installer_node.look() == Report("install", waiting=reason)
        assert not installer_node.path(CONFLIST).exists()

    def test_networks_of_tenants_do_not_keep_a_node_from_pods(self, installer_node: InstallerNode) -> None:
        installer_node.report = {"problems": {"7": "no route"}}
        assert installer_node.look() == DONE

    def test_an_agent_without_a_datapath_has_none_to_wait_for(
        self, installer_node: InstallerNode, agent: ScriptedAgent
    ) -> None:
        agent.clear_behaviours()
        agent.reject("GET", "/datapath/report", status=404)
        assert installer_node.look() == DONE

    def test_the_agent_is_that_of_the_daemon(self, installer_node: InstallerNode, agent: ScriptedAgent) -> None:
        installer_node.configure("cni.json", '{"agent-socket": "/nowhere/agent.sock"}')
        assert installer_node.look().waiting.startswith("agent unreachable at unix:/nowhere/agent.sock: ")
        installer_node.configure("cnid.yaml", f"agent-socket: {agent.socket_path}")
        assert installer_node.look() == DONE
        installer_node.path(CONFLIST).unlink()
        installer_node.configure("cnid.yaml", "agent: none")
        assert "/cnid.yaml: unknown key agent with value " in installer_node.look().errors[0]

    def test_the_list_waits_for_the_agent(self, installer_node: InstallerNode, agent: ScriptedAgent) -> None:
        agent.stop()
        assert installer_node.look().waiting.startswith(f"agent unreachable at unix:{agent.socket_path}: ")
        assert not installer_node.path(CONFLIST).exists()

    def test_a_list_that_is_there_stays_while_the_next_release_starts(self, installer_node: InstallerNode) -> None:
        installer_node.look()
        installer_node.set_ready(is_ready=False)
        installer_node.configure("10-contrail.conflist", network_list(name="next"))
        assert not installer_node.look().done
        assert json.loads(installer_node.path(CONFLIST).read_text())["name"] == "contrail-k8s-cni"
        installer_node.set_ready()
        assert installer_node.look() == DONE
        assert json.loads(installer_node.path(CONFLIST).read_text())["name"] == "next"

    def test_a_list_that_is_removed_after_the_node_was_ready_is_back_at_once(
        self, installer_node: InstallerNode
    ) -> None:
        keeper = installer_node.keeper()
        keeper.look()
        installer_node.set_ready(is_ready=False)
        installer_node.path(CONFLIST).unlink()
        keeper.look()
        assert installer_node.files() == ALL


class TestOthers:
    def test_a_plugin_that_rewrites_the_directory_keeps_its_files_and_ours_are_back(
        self, installer_node: InstallerNode, capfd: pytest.CaptureFixture[str]
    ) -> None:
        keeper = installer_node.keeper()
        keeper.look()
        theirs = installer_node.path("etc/cni/net.d/05-other.conflist")
        for path in theirs.parent.iterdir():
            path.unlink()
        theirs.write_text(network_list("bridge", "bridges"))
        keeper.look()
        conflict = f"/{CONFLIST.replace('10-contrail', '05-other')}: sorts before 10-contrail.conflist, so runtimes use"
        (reported,) = installer_node.reported().conflicts
        assert reported.startswith(conflict)
        assert installer_node.reported().done
        assert theirs.read_text() == network_list("bridge", "bridges")
        assert installer_node.path(CONFLIST).read_text() == network_list()
        theirs.unlink()
        keeper.look()
        assert installer_node.reported() == DONE
        logged = capfd.readouterr().err
        assert f"put /{CONFLIST} back: it was removed or changed" in logged
        assert logged.count(conflict) == 1

    def test_a_plugin_that_rewrites_the_directory_again_and_again(self, installer_node: InstallerNode) -> None:
        """All files may be gone at any moment of a look, and theirs may be written by half."""
        keeper = installer_node.keeper()
        theirs = installer_node.path("etc/cni/net.d/05-other.conflist")
        content = network_list("bridge", "bridges")
        is_over = threading.Event()

        def rewrite() -> None:
            while not is_over.is_set():
                for path in theirs.parent.iterdir():
                    path.unlink(missing_ok=True)
                with theirs.open("w", buffering=1) as file:
                    for character in content:
                        file.write(character)

        with ThreadPoolExecutor(1) as pool:
            rewriting = pool.submit(rewrite)
            try:
                for _ in range(100):
                    keeper.look()
            finally:
                is_over.set()
            rewriting.result(timeout=10)
        keeper.look()
        assert installer_node.reported().done
        assert len(installer_node.reported().conflicts) == 1
        assert installer_node.files() == sorted([*ALL, "etc/cni/net.d/05-other.conflist"])
        assert theirs.read_text() == content

    def test_where_another_plugin_has_the_default_network_no_list_is_installed(
        self, installer_node: InstallerNode
    ) -> None:
        installer_node.look()
        installer_node.path("etc/cni/net.d/05-other.conflist").write_text(network_list("bridge"))
        installer_node.configure("10-contrail.conflist", None)
        assert installer_node.look() == DONE
        assert not installer_node.path(CONFLIST).exists()

    def test_a_list_that_the_configuration_has_again_waits_for_the_node(self, installer_node: InstallerNode) -> None:
        keeper = installer_node.keeper()
        keeper.look()
        installer_node.configure("10-contrail.conflist", None)
        keeper.look()
        installer_node.configure("10-contrail.conflist", network_list())
        installer_node.set_ready(is_ready=False)
        keeper.look()
        assert installer_node.reported().waiting
        assert not installer_node.path(CONFLIST).exists()
        installer_node.set_ready()
        keeper.look()
        assert installer_node.files() == ALL

    def test_one_process_at_a_time_works_on_a_node(
        self, installer_node: InstallerNode, capfd: pytest.CaptureFixture[str]
    ) -> None:
        keeper = installer_node.keeper()
        with installer_lock(installer_node.paths.run_dir):
            for _ in range(2):
                keeper.look()
        assert installer_node.files() == []
        assert capfd.readouterr().err.count("another process installs or uninstalls on this node") == 1
        keeper.look()
        assert installer_node.files() == ALL


class TestFailures:
    @pytest.mark.parametrize(
        ("name", "content", "error"),
        [
            ("10-contrail.conflist", "{", "/10-contrail.conflist: is not JSON: "),
            ("10-contrail.conflist", network_list("bridge"), ": no plugin has the type contrail-k8s-cni"),
            ("cni.json", "[]", "/cni.json: must hold a JSON object"),
            ("cni.json", '{"agent": 1}', "/cni.json: unknown key agent with value 1"),
            ("cni.json", None, "/cni.json: cannot read: No such file or directory"),
            ("contrail-k8s-cni", None, "/contrail-k8s-cni: cannot read: No such file or directory"),
        ],
    )
    def test_a_node_keeps_what_works_if_the_new_files_could_not(
        self, installer_node: InstallerNode, name: str, content: str | None, error: str
    ) -> None:
        installer_node.look()
        before = {each: installer_node.path(each).read_bytes() for each in ALL}
        installer_node.configure(name, content)
        report = installer_node.look()
        assert not report.done
        assert error in report.errors[0]
        assert {each: installer_node.path(each).read_bytes() for each in ALL} == before

    def test_what_a_newer_release_left_on_the_node_is_replaced(self, installer_node: InstallerNode) -> None:
        """As after a rollback: it need not be understood."""
        installer_node.look()
        installer_node.path(SETTINGS).write_text('{"key-of-a-newer-release": 1}')
        installer_node.path(CONFLIST).write_text('{"cniVersion": "9.0.0", "plugins": 1}')
        assert installer_node.look() == DONE
        assert (
            installer_node.path(SETTINGS).read_text()
            == Path(installer_node.paths.configuration, "cni.json").read_text()
        )
        assert installer_node.path(CONFLIST).read_text() == network_list()

    def test_what_is_removed_is_put_back_although_the_new_files_are_invalid(
        self, installer_node: InstallerNode
    ) -> None:
        keeper = installer_node.keeper()
        keeper.look()
        installer_node.configure("cni.json", "{")
        installer_node.path(PLUGIN).unlink()
        keeper.look()
        (error,) = installer_node.reported().errors
        assert "/cni.json: " in error
        assert not installer_node.reported().done
        assert installer_node.files() == ALL

    def test_a_full_disk_leaves_the_old_files_and_is_tried_again(
        self, small_disk: Path, tmp_path: Path, agent: ScriptedAgent
    ) -> None:
        node = InstallerNode(tmp_path, agent, small_disk / "node")
        node.look()
        ballast = small_disk / "ballast"
        ballast.write_bytes(b"x" * (SMALL_DISK - 32 * 1024))
        old = node.path(PLUGIN).read_bytes()
        node.configure("contrail-k8s-cni", old.decode() + "#" * 32 * 1024)
        keeper = node.keeper()
        for _ in range(2):
            keeper.look()
            assert node.reported().errors == (f"/{PLUGIN}: cannot write: No space left on device",)
        assert node.files() == ALL
        assert node.path(PLUGIN).read_bytes() == old
        ballast.unlink()
        keeper.look()
        assert node.reported() == DONE

    def test_without_inodes_the_list_waits_for_the_link_of_the_loopback(
        self, tmp_path: Path, agent: ScriptedAgent
    ) -> None:
        disk = tmp_path / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=30", "tmpfs", disk], check=True)
        try:
            node = InstallerNode(tmp_path, agent, disk / "node")
            ballast = disk / "ballast"
            ballast.mkdir()
            with contextlib.suppress(OSError):
                for number in itertools.count():
                    (ballast / f"{number}").touch()
            for number in range(2):  # the plugin, and the file that the link leads to
                (ballast / f"{number}").unlink()
            keeper = node.keeper()
            for _ in range(2):
                keeper.look()
                assert node.reported().errors == (f"/{LOOPBACK}: cannot write: No space left on device",)
                assert node.files() == sorted([PLUGIN, OUR_LOOPBACK])
            shutil.rmtree(ballast)
            keeper.look()
            assert node.reported() == DONE
            assert node.files() == ALL
        finally:
            subprocess.run(["umount", disk], check=True)

    def test_without_space_for_the_report_all_is_installed_and_the_process_ends(
        self, installer_node: InstallerNode, small_disk: Path
    ) -> None:
        """Its container is restarted: without a report, its probes would not know what it does."""
        installer_node.paths = installer_node.paths._replace(run_dir=str(small_disk))
        ballast = small_disk / "ballast"
        ballast.write_bytes(b"x" * SMALL_DISK)
        with pytest.raises(PluginError, match=r"/installer\.json: cannot write: No space left on device$"):
            installer_node.look()
        assert installer_node.files() == ALL
        assert read_report(str(small_disk)) is None
        ballast.unlink()
        assert installer_node.look() == DONE

    def test_a_directory_of_the_node_that_is_gone_ends_the_process(self, installer_node: InstallerNode) -> None:
        keeper = installer_node.keeper()
        keeper.look()
        shutil.rmtree(installer_node.path("etc/cni/net.d"))
        with pytest.raises(DirectoryGoneError, match=r"^/etc/cni/net.d: the directory does not exist$"):
            keeper.look()
