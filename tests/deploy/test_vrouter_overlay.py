"""`deploy/overlays/vrouter`: the programs take its configuration, and find the files that it mounts.

`tests/e2e/kubernetes/overlays` has what kustomize makes of it, and what the API server makes of that.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent_api.configuration import load_agent_configuration
from cni_contrail.daemon.configuration import load_daemon_configuration
from cni_contrail.installer.upstream import check_take_over, find_upstream
from cni_contrail.runtime.configuration import parse_list
from cni_contrail.settings import settings_of
from contrail_config.vnc.settings import VncSettings
from manager.configuration import ManagerConfiguration, load_manager_configuration
from tests.cni_contrail.installer.upstream_node import upstream_text
from tests.support.applied_manifests import MANIFESTS, documents

OVERLAY = MANIFESTS.parent / "overlays" / "vrouter"
BASE = {(item["kind"], item["metadata"]["name"]): item for item in documents(MANIFESTS)}


def patch(name: str) -> dict[str, Any]:
    (loaded,) = documents(OVERLAY / name)
    return loaded


def written(folder: Path, name: str, text: str) -> str:
    file = folder / name
    file.write_text(text)
    return str(file)


@pytest.fixture
def manager(tmp_path: Path) -> ManagerConfiguration:
    text = patch("manager-configuration.yaml")["data"]["manager.yaml"]
    return load_manager_configuration(written(tmp_path, "manager.yaml", text))


def test_the_manager_has_a_contrail_api_server_as_store(manager: ManagerConfiguration) -> None:
    assert isinstance(manager.store, VncSettings)
    assert not manager.network_slices


def test_the_manager_differs_from_that_of_the_base_in_its_store_and_slices_only() -> None:
    ours = yaml.safe_load(patch("manager-configuration.yaml")["data"]["manager.yaml"])
    base = yaml.safe_load(BASE["ConfigMap", "contrail-manager"]["data"]["manager.yaml"])
    assert {key for key in base.keys() | ours.keys() if base.get(key) != ours.get(key)} == {"store", "network-slices"}


def test_agents_of_nodes_without_a_vrouter_mean_the_same_cluster(manager: ManagerConfiguration, tmp_path: Path) -> None:
    before = yaml.safe_load(BASE["ConfigMap", "contrail-node"]["data"]["agent.yaml"])
    keys = yaml.safe_load((OVERLAY / "agent.yaml").read_text())
    agent = load_agent_configuration(written(tmp_path, "agent.yaml", yaml.safe_dump({**before, **keys})))
    assert isinstance(agent.store, VncSettings)
    assert isinstance(manager.store, VncSettings)
    assert agent.cluster_name == manager.cluster_name
    assert agent.store.urls == manager.store.urls


def test_daemon_and_plugin_ask_the_vrouter_agent(tmp_path: Path) -> None:
    data = patch("node-configuration.yaml")["data"]
    daemon = load_daemon_configuration(written(tmp_path, "cnid.yaml", data["cnid.yaml"]))
    plugin = json.loads(data["cni.json"])
    for settings in (daemon.settings, plugin):
        assert settings["agent-socket"] == ""
        assert (settings["vrouter-ip"], settings["vrouter-port"]) == ("127.0.0.1", 9091)


def test_the_patch_of_a_take_over_adds_its_option_to_the_installer() -> None:
    (patched,) = patch("take-over-patch.yaml")["spec"]["template"]["spec"]["containers"]
    containers = BASE["DaemonSet", "contrail-node"]["spec"]["template"]["spec"]["containers"]
    (installer,) = (each for each in containers if each["name"] == patched["name"])
    assert patched["command"] == [*installer["command"], "--take-over"]


def test_the_overlay_takes_over_what_contrails_installer_writes(tmp_path: Path) -> None:
    """But for the interface of nested mode and addresses of an agent elsewhere, nothing needs to be configured."""
    (tmp_path / "10-contrail.conf").write_text(upstream_text())
    upstream = find_upstream(str(tmp_path), "")
    assert upstream
    data = patch("node-configuration.yaml")["data"]
    settings = load_daemon_configuration(written(tmp_path, "cnid.yaml", data["cnid.yaml"])).settings
    network = BASE["ConfigMap", "contrail-node"]["data"]["10-contrail.conflist"]
    check_take_over(upstream, parse_list(network.encode(), origin=""), settings_of(settings))


def test_the_daemon_differs_from_that_of_the_base_in_its_agent_only() -> None:
    ours = yaml.safe_load(patch("node-configuration.yaml")["data"]["cnid.yaml"])
    base = yaml.safe_load(BASE["ConfigMap", "contrail-node"]["data"]["cnid.yaml"])
    assert ours.keys() == base.keys()
    assert {key for key in base if base[key] != ours[key]} == {"agent-socket"}


def stores() -> dict[str, dict[str, Any]]:
    """The section `store` of manager and agent."""
    texts = {
        "manager": patch("manager-configuration.yaml")["data"]["manager.yaml"],
        "agent": (OVERLAY / "agent.yaml").read_text(),
    }
    return {program: yaml.safe_load(text)["store"] for program, text in texts.items()}


@pytest.mark.parametrize("program", ["manager", "agent"])
def test_all_files_that_a_program_reads_are_mounted(program: str) -> None:
    pod = patch(f"{program}-patch.yaml")["spec"]["template"]["spec"]
    ((mount,),) = (container["volumeMounts"] for container in pod["containers"])
    assert [volume["name"] for volume in pod["volumes"]] == [mount["name"]]
    store = stores()[program]
    files = [store["ca-file"], store["keystone"]["password-file"], store["keystone"]["ca-file"]]
    assert {str(Path(file).parent) for file in files} == {mount["mountPath"]}


@pytest.mark.parametrize("program", ["manager", "agent"])
def test_a_program_may_read_the_files(program: str) -> None:
    """A secret's files belong to root, and to the group `fsGroup` of the pod if that is set."""
    changes = patch(f"{program}-patch.yaml")
    before = BASE[changes["kind"], changes["metadata"]["name"]]
    pod, changed = (item["spec"]["template"]["spec"] for item in (before, changes))
    (container,) = (each for each in pod["containers"] if each["name"] == program)
    context = {**pod["securityContext"], **changed.get("securityContext", {}), **container["securityContext"]}
    (volume,) = changed["volumes"]
    mode = volume["secret"]["defaultMode"]
    assert not mode & 0o007
    assert mode & (0o400 if context["runAsUser"] == 0 else 0o040)
    assert context["runAsUser"] == 0 or context.get("fsGroup") == context["runAsGroup"]


@pytest.mark.parametrize("name", ["manager-patch.yaml", "node-patch.yaml", "agent-patch.yaml"])
def test_a_patch_names_containers_and_volumes_that_exist(name: str) -> None:
    changed = patch(name)
    existing = BASE[changed["kind"], changed["metadata"]["name"]]["spec"]["template"]["spec"]
    pod = changed["spec"]["template"]["spec"]
    for kind in ("containers", "volumes"):
        names = {one["name"] for one in pod[kind] if kind == "containers" or "$patch" in one}
        assert names <= {one["name"] for one in existing[kind]}


def test_the_manager_has_no_right_that_the_base_does_not_give() -> None:
    ours, base = patch("manager-access.yaml")["rules"], BASE["ClusterRole", "contrail-manager"]["rules"]
    assert rights(ours) < rights(base)


def rights(rules: list[dict[str, Any]]) -> set[tuple[str, str, str, str]]:
    """Group, resource, name and verb of everything that the rules allow; the name is empty for all objects."""
    return {
        (group, resource, name, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    }
