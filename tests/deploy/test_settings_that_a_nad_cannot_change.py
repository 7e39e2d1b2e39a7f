"""The settings of the node in `deploy`: tenants can change no key that the node sets."""

import json
from pathlib import Path

from cni_contrail.settings import Settings
from contrail_yaml.file import read_yaml
from tests.deploy.test_manifests_of_a_cluster_hold_together import written

MULTUS = Path(__file__).parents[2] / "deploy" / "multus" / "cni.json"
OWN_POD_ONLY = {"mode", "mtu", "nad", "poll-timeout", "poll-retries", "log-level", "meta-plugin"}
"""Keys that name no file, endpoint, kind of link or foreign pod; the wait for the agent has a bound by default."""
PROTECTED = {field.replace("_", "-") for field in Settings._fields} - OWN_POD_ONLY


def test_the_daemon_of_a_cluster_sets_them_all(tmp_path: Path) -> None:
    assert read_yaml(written(tmp_path, "contrail-node", "cnid.yaml")).keys() >= PROTECTED


def test_the_node_file_for_multus_sets_them_all() -> None:
    assert json.loads(MULTUS.read_text()).keys() >= PROTECTED
