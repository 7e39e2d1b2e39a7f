"""The installer replaces Contrail's own plugin at one moment, and the uninstaller puts it back, byte for byte."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from cni_contrail.installer.keeper import Keeper
from cni_contrail.installer.report import Report
from tests.cni_contrail.conftest import until
from tests.cni_contrail.installer.conftest import CONFLIST, LOOPBACK, OUR_LOOPBACK, PLUGIN, SETTINGS, network_list
from tests.cni_contrail.installer.test_installer_command import COMMAND, options
from tests.cni_contrail.installer.test_uninstaller import stops_after
from tests.cni_contrail.installer.upstream_node import (
    CONF,
    EXECUTABLE,
    KEPT_CONF,
    KEPT_PLUGIN,
    TF_CONF,
    UpstreamNode,
    upstream_text,
)
from tests.support.scripted_agents import ScriptedAgent
from tests.support.shim import build_shim

TAKEN_OVER = sorted([KEPT_CONF, KEPT_PLUGIN, PLUGIN, LOOPBACK, OUR_LOOPBACK, SETTINGS, CONFLIST])
DONE = Report("install", done=True)


@pytest.fixture
def upstream_node(tmp_path: Path, vrouter_agent: ScriptedAgent) -> UpstreamNode:
    node = UpstreamNode(tmp_path, vrouter_agent)
    vrouter_agent.clear_behaviours()  # it has no report on a datapath
    node.configure_agent(vrouter_agent.listen_on_tcp()[1])
    node.install_upstream()
    return node


@pytest.fixture
def keeper(upstream_node: UpstreamNode) -> Keeper:
    return Keeper(upstream_node.paths, upstream_node.log, take_over=True)


def uninstall(node: UpstreamNode) -> None:
    node.uninstaller().run(stops_after())
    assert node.reported() == Report("uninstall", done=True)


def test_there_and_back(upstream_node: UpstreamNode, keeper: Keeper, capfd: pytest.CaptureFixture[str]) -> None:
    before = upstream_node.snapshot()
    for _ in range(2):
        keeper.look()
        assert upstream_node.reported() == DONE
        assert upstream_node.files() == TAKEN_OVER
    assert upstream_node.first_configuration().name == "10-contrail.conflist"
    assert upstream_node.path(PLUGIN).read_bytes() == Path(upstream_node.paths.plugins, "contrail-k8s-cni").read_bytes()
    logged = capfd.readouterr().err
    assert logged.count(f"took over /{CONF}") == 1
    assert 'no counterpart: log-file "/var/log/contrail/cni/opencontrail.log"' in logged
    uninstall(upstream_node)
    assert upstream_node.files() == sorted(before)
    assert upstream_node.snapshot() == before


def test_a_node_of_the_operator_of_tungsten_fabric(upstream_node: UpstreamNode, keeper: Keeper) -> None:
    upstream_node.path(CONF).unlink()
    upstream_node.install_upstream(TF_CONF)
    before = upstream_node.snapshot()
    refusal = f"/{TF_CONF}: Contrail's own plugin is installed: use --take-over to replace it"
    assert upstream_node.look().errors == (refusal,)
    keeper.look()
    assert upstream_node.reported() == DONE
    assert upstream_node.files() == sorted({*TAKEN_OVER, f"{TF_CONF}.upstream"} - {KEPT_CONF})
    assert upstream_node.first_configuration().name == "10-contrail.conflist"
    uninstall(upstream_node)
    assert upstream_node.files() == sorted(before)
    assert upstream_node.snapshot() == before


@pytest.mark.parametrize("text", [upstream_text(**{"cluster-name": "old"}), "{"], ids=["other settings", "broken"])
def test_a_second_configuration_which_contrails_plugin_does_not_read(
    upstream_node: UpstreamNode, keeper: Keeper, capfd: pytest.CaptureFixture[str], text: str
) -> None:
    """As after a change from one of its installers to the other."""
    upstream_node.path(TF_CONF).write_text(text)
    before = upstream_node.snapshot()
    for _ in range(2):
        keeper.look()
        assert upstream_node.reported() == DONE
        assert upstream_node.files() == sorted([*TAKEN_OVER, f"{TF_CONF}.upstream"])
    assert f"took over /{CONF}; not read by it: /{TF_CONF}" in capfd.readouterr().err
    uninstall(upstream_node)
    assert upstream_node.files() == sorted(before)
    assert upstream_node.snapshot() == before


def test_a_node_can_be_taken_over_again(upstream_node: UpstreamNode, keeper: Keeper) -> None:
    before = upstream_node.snapshot()
    for _ in range(2):
        keeper.look()
        assert upstream_node.files() == TAKEN_OVER
        uninstall(upstream_node)
        assert upstream_node.snapshot() == before


def test_without_being_told_to_nothing_is_touched(upstream_node: UpstreamNode) -> None:
    before = upstream_node.snapshot()
    report = upstream_node.look()
    assert report.errors == (f"/{CONF}: Contrail's own plugin is installed: use --take-over to replace it",)
    assert not report.done
    assert upstream_node.files() == sorted(before)
    uninstall(upstream_node)
    assert upstream_node.snapshot() == before


def test_an_executable_without_its_configuration_is_kept_too(upstream_node: UpstreamNode) -> None:
    """As while the node is being set up, or after its configuration was removed by hand."""
    upstream_node.path(CONF).unlink()
    before = upstream_node.snapshot()
    for _ in range(2):  # of which the second finds ours
        assert upstream_node.look() == DONE
        assert upstream_node.path(KEPT_PLUGIN).read_bytes() == EXECUTABLE
    uninstall(upstream_node)
    assert upstream_node.snapshot() == before


def test_an_executable_is_left_where_nothing_was_installed(upstream_node: UpstreamNode) -> None:
    upstream_node.path(CONF).unlink()
    before = upstream_node.snapshot()
    uninstall(upstream_node)
    assert upstream_node.files() == sorted(before)
    assert upstream_node.snapshot() == before


def test_a_restarted_uninstaller_leaves_the_executable_that_it_put_back(upstream_node: UpstreamNode) -> None:
    upstream_node.path(CONF).unlink()
    before = upstream_node.snapshot()
    upstream_node.look()
    for _ in range(2):
        uninstall(upstream_node)
        assert upstream_node.files() == sorted(before)
        assert upstream_node.snapshot() == before


def test_the_executable_that_was_kept_first_counts_without_a_configuration(upstream_node: UpstreamNode) -> None:
    """Ours may have been damaged while no installer ran."""
    upstream_node.path(CONF).unlink()
    before = upstream_node.snapshot()
    upstream_node.look()
    upstream_node.path(PLUGIN).write_text("damaged")
    upstream_node.look()
    assert upstream_node.path(KEPT_PLUGIN).read_bytes() == EXECUTABLE
    uninstall(upstream_node)
    assert upstream_node.snapshot() == before


def test_a_pipe_in_place_of_the_executable_does_not_block(upstream_node: UpstreamNode) -> None:
    upstream_node.path(CONF).unlink()
    upstream_node.path(PLUGIN).unlink()
    os.mkfifo(upstream_node.path(PLUGIN))
    assert upstream_node.look() == DONE
    uninstall(upstream_node)
    assert upstream_node.path(PLUGIN).is_fifo()


def test_what_replaces_our_executable_while_the_installer_runs_is_not_kept(upstream_node: UpstreamNode) -> None:
    upstream_node.path(CONF).unlink()
    upstream_node.path(PLUGIN).unlink()
    keeper = Keeper(upstream_node.paths, upstream_node.log)
    keeper.look()
    upstream_node.path(PLUGIN).write_text("damaged")
    keeper.look()
    assert not upstream_node.path(KEPT_PLUGIN).exists()
    uninstall(upstream_node)
    assert upstream_node.files() == []


def test_contrails_plugin_serves_pods_until_the_daemon_is_ready(upstream_node: UpstreamNode, keeper: Keeper) -> None:
    before = upstream_node.snapshot()
    upstream_node.set_ready(is_ready=False)
    for _ in range(2):
        keeper.look()
        assert upstream_node.reported().waiting == "plugin contrail-k8s-cni failed (STATUS): no daemon (code 50)"
        assert upstream_node.files() == sorted(before)
        assert upstream_node.snapshot() == before
    upstream_node.set_ready()
    keeper.look()
    assert upstream_node.files() == TAKEN_OVER


def test_contrails_plugin_serves_pods_while_settings_differ(upstream_node: UpstreamNode, keeper: Keeper) -> None:
    upstream_node.install_upstream(**{"cluster-name": "prod", "mtu": 9000})
    before = upstream_node.snapshot()
    keeper.look()
    assert upstream_node.reported().errors == (
        f'/{CONF}: not taken over: cluster-name is "prod" there and "k8s" here; mtu is 9000 there and 1500 here',
    )
    assert upstream_node.snapshot() == before
    upstream_node.configure("cnid.yaml", "cluster-name: prod\nmtu: 9000\n")
    keeper.look()
    assert upstream_node.reported() == DONE
    assert upstream_node.files() == TAKEN_OVER
    upstream_node.configure("cnid.yaml", "cluster-name: prod\n")  # may change once it is ours
    keeper.look()
    assert upstream_node.reported() == DONE


@pytest.mark.parametrize("text", ["", "{", "[]", upstream_text(**{"vrouter-port": -1})])
def test_a_broken_configuration_is_not_taken_over(upstream_node: UpstreamNode, keeper: Keeper, text: str) -> None:
    upstream_node.path(CONF).write_text(text)
    before = upstream_node.snapshot()
    keeper.look()
    (error,) = upstream_node.reported().errors
    assert error.startswith(f"/{CONF}: ")
    assert upstream_node.snapshot() == before
    uninstall(upstream_node)
    assert upstream_node.snapshot() == before


def test_a_node_is_not_left_without_a_network(upstream_node: UpstreamNode, keeper: Keeper) -> None:
    before = upstream_node.snapshot()
    upstream_node.configure("10-contrail.conflist", None)
    keeper.look()
    assert upstream_node.reported().errors == (
        f"/{CONF}: not taken over: the configuration has no network configuration list",
    )
    assert upstream_node.snapshot() == before


def test_contrails_installer_that_runs_again_is_taken_over_again(upstream_node: UpstreamNode, keeper: Keeper) -> None:
    keeper.look()
    upstream_node.install_upstream(**{"log-level": "5"})
    upstream_node.path(PLUGIN).write_bytes(EXECUTABLE + b"2")
    newer = upstream_node.snapshot()
    keeper.look()
    assert upstream_node.reported() == DONE
    assert upstream_node.files() == TAKEN_OVER
    uninstall(upstream_node)
    assert upstream_node.snapshot() == newer


def test_what_contrails_installer_puts_there_before_the_uninstallation_stays(
    upstream_node: UpstreamNode, keeper: Keeper
) -> None:
    keeper.look()
    upstream_node.install_upstream(**{"log-level": "5"})
    upstream_node.path(PLUGIN).write_bytes(EXECUTABLE + b"2")
    newer = upstream_node.snapshot()
    uninstall(upstream_node)
    assert upstream_node.files() == sorted(newer)
    assert upstream_node.snapshot() == newer


def test_an_executable_of_ours_is_not_kept_for_contrails(upstream_node: UpstreamNode, keeper: Keeper) -> None:
    """As after a kill before the configuration was renamed, and an upgrade of the image since."""
    upstream_node.path(KEPT_PLUGIN).write_bytes(EXECUTABLE)
    upstream_node.path(PLUGIN).write_bytes(Path(build_shim()).read_bytes() + b"older")
    keeper.look()
    assert upstream_node.path(KEPT_PLUGIN).read_bytes() == EXECUTABLE
    uninstall(upstream_node)
    assert upstream_node.path(PLUGIN).read_bytes() == EXECUTABLE


def test_without_an_executable_of_contrails_ours_is_removed(upstream_node: UpstreamNode, keeper: Keeper) -> None:
    upstream_node.path(PLUGIN).unlink()
    keeper.look()
    uninstall(upstream_node)
    assert upstream_node.files() == [CONF]


def test_links_are_kept_as_links(upstream_node: UpstreamNode, keeper: Keeper) -> None:
    """That of the executable leads to a file that does not exist in the installer's container."""
    upstream_node.path(CONF).rename(upstream_node.path("etc/cni/net.d/target"))
    upstream_node.path(CONF).symlink_to("target")
    upstream_node.path(PLUGIN).unlink()
    upstream_node.path(PLUGIN).symlink_to("/usr/lib/contrail/contrail-k8s-cni")
    keeper.look()
    assert upstream_node.reported() == DONE
    assert not upstream_node.path(PLUGIN).is_symlink()
    uninstall(upstream_node)
    targets = [upstream_node.path(name).readlink() for name in (PLUGIN, CONF)]
    assert targets == [Path("/usr/lib/contrail/contrail-k8s-cni"), Path("target")]


def test_other_configurations_stay(upstream_node: UpstreamNode, keeper: Keeper) -> None:
    others = {
        "etc/cni/net.d/20-other-contrail.conf": json.dumps({"cniVersion": "0.3.1", "name": "x", "type": "bridge"}),
        "etc/cni/net.d/30-other.conflist": network_list("bridge"),
        "etc/cni/net.d/10-contrail.conf.bak": "x",
    }
    for name, text in others.items():
        upstream_node.path(name).write_text(text)
    keeper.look()
    assert upstream_node.files() == sorted([*TAKEN_OVER, *others])
    uninstall(upstream_node)
    assert {name: upstream_node.path(name).read_text() for name in others} == others


def test_a_configuration_that_cannot_be_renamed_is_tried_again(upstream_node: UpstreamNode, keeper: Keeper) -> None:
    upstream_node.path(KEPT_CONF).mkdir()
    keeper.look()
    assert upstream_node.reported().errors == (f"/{CONF}: cannot be renamed: Is a directory",)
    upstream_node.path(KEPT_CONF).rmdir()
    keeper.look()
    assert upstream_node.reported() == DONE
    assert upstream_node.files() == TAKEN_OVER


def test_an_executable_that_cannot_be_kept_is_not_replaced(upstream_node: UpstreamNode, keeper: Keeper) -> None:
    before = upstream_node.snapshot()
    upstream_node.path(KEPT_PLUGIN).mkdir()
    keeper.look()
    (error,) = upstream_node.reported().errors
    assert error.startswith(f"/{PLUGIN}: cannot be kept as /{KEPT_PLUGIN}: ")
    assert upstream_node.snapshot() == before


def test_the_command_takes_over_if_told_to(upstream_node: UpstreamNode) -> None:
    process = subprocess.Popen([COMMAND, "install", "--take-over", *options(upstream_node)])
    try:
        until(lambda: upstream_node.files() == TAKEN_OVER)
    finally:
        process.terminate()
        assert process.wait(10) == 0
