"""`deploy/cni/10-contrail.conflist`, and the one with plugins behind ours: what a node's runtime reads."""

import json
from pathlib import Path

from cni_contrail.protocol.versions import SUPPORTED
from cni_contrail.runtime.configuration import load_file
from cni_contrail.settings import Settings

CONFLIST = Path(__file__).parents[2] / "deploy" / "cni" / "10-contrail.conflist"


def test_it_is_the_one_by_whose_name_thick_mode_is_known() -> None:
    network = load_file(str(CONFLIST))
    assert network.name == Settings().network_name
    assert Settings().is_thick(network.name)


def test_it_runs_our_plugin_with_the_capabilities_that_a_runtime_may_pass() -> None:
    plugin = load_file(str(CONFLIST)).plugins[0]
    assert plugin.type == "contrail-k8s-cni"
    assert plugin.capabilities == {"ips", "mac"}


def test_runtimes_that_choose_a_version_are_offered_all_that_the_plugin_serves_since_check() -> None:
    offered = json.loads(CONFLIST.read_text())["cniVersions"]
    assert tuple(offered) == SUPPORTED[SUPPORTED.index("0.4.0") :]
    assert load_file(str(CONFLIST)).version == SUPPORTED[-1]


def test_runtimes_that_do_not_take_one_that_they_all_know() -> None:
    assert json.loads(CONFLIST.read_text())["cniVersion"] == "1.0.0"


def test_it_leaves_everything_else_to_the_node() -> None:
    network = load_file(str(CONFLIST))
    assert (network.disable_check, network.disable_gc) == (False, False)
    assert network.plugins[0].document.keys() == {"type", "capabilities"}


def test_the_chained_list_has_the_same_plugin_and_others_behind_it() -> None:
    chained = load_file(str(CONFLIST.parent / "chained" / CONFLIST.name))
    plain = load_file(str(CONFLIST))
    assert chained.name == plain.name
    assert chained.plugins[0].document == plain.plugins[0].document
    assert {each.type: set(each.capabilities) for each in chained.plugins[1:]} == {
        "portmap": {"portMappings"},
        "bandwidth": {"bandwidth"},
    }
    assert chained.version == "1.0.0"
