"""`deploy/contrail`: keys and patches for a Contrail API server fit the manifests in `deploy/kubernetes`."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from agent_api.configuration import load_agent_configuration
from cni_contrail.daemon.configuration import load_daemon_configuration
from contrail_config.vnc.settings import VncSettings
from manager.configuration import load_manager_configuration
from tests.support.applied_manifests import MANIFESTS, documents

KEYS = MANIFESTS.parent / "contrail"
OBJECTS = {(item["kind"], item["metadata"]["name"]): item for item in documents(MANIFESTS)}


def keys(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((KEYS / name).read_text())
    return loaded


def merged(folder: Path, config_map: str, name: str) -> str:
    """The path of a configuration with the keys copied into it."""
    file = folder / name
    before = yaml.safe_load(OBJECTS["ConfigMap", config_map]["data"][name])
    file.write_text(yaml.safe_dump({**before, **keys(name)}))
    return str(file)


def test_manager_and_agent_take_the_keys_and_mean_the_same_cluster(tmp_path: Path) -> None:
    manager = load_manager_configuration(merged(tmp_path, "contrail-manager", "manager.yaml"))
    agent = load_agent_configuration(merged(tmp_path, "contrail-node", "agent.yaml"))
    assert isinstance(manager.store, VncSettings)
    assert isinstance(agent.store, VncSettings)
    assert agent.cluster_name == manager.cluster_name
    assert agent.store.urls == manager.store.urls


def test_the_daemon_asks_the_vrouter_agent(tmp_path: Path) -> None:
    daemon = load_daemon_configuration(merged(tmp_path, "contrail-node", "cnid.yaml"))
    assert daemon.settings["agent-socket"] == ""
    assert daemon.settings["vrouter-port"] == 9091


@pytest.mark.parametrize("program", ["manager", "agent"])
def test_all_files_that_a_program_reads_are_mounted(program: str) -> None:
    pod = keys(f"{program}-patch.yaml")["spec"]["template"]["spec"]
    ((mount,),) = (container["volumeMounts"] for container in pod["containers"])
    assert [volume["name"] for volume in pod["volumes"]] == [mount["name"]]
    store = keys(f"{program}.yaml")["store"]
    files = [store["ca-file"], store["keystone"]["password-file"], store["keystone"]["ca-file"]]
    assert {str(Path(file).parent) for file in files} == {mount["mountPath"]}


@pytest.mark.parametrize(
    ("program", "kind", "name"),
    [("manager", "Deployment", "contrail-manager"), ("agent", "DaemonSet", "contrail-node")],
)
def test_a_program_may_read_the_files(program: str, kind: str, name: str) -> None:
    """A secret's files belong to root, and to the group `fsGroup` of the pod if that is set."""
    pod, patch = (item["spec"]["template"]["spec"] for item in (OBJECTS[kind, name], keys(f"{program}-patch.yaml")))
    (container,) = (each for each in pod["containers"] if each["name"] == program)
    context = {**pod["securityContext"], **patch.get("securityContext", {}), **container["securityContext"]}
    (volume,) = patch["volumes"]
    mode = volume["secret"]["defaultMode"]
    assert not mode & 0o007
    assert mode & (0o400 if context["runAsUser"] == 0 else 0o040)
    assert context["runAsUser"] == 0 or context.get("fsGroup") == context["runAsGroup"]


@pytest.mark.parametrize(
    ("patch", "kind", "name"),
    [
        ("manager-patch.yaml", "Deployment", "contrail-manager"),
        ("node-patch.yaml", "DaemonSet", "contrail-node"),
        ("agent-patch.yaml", "DaemonSet", "contrail-node"),
    ],
)
def test_a_patch_names_a_container_that_exists(patch: str, kind: str, name: str) -> None:
    existing = {one["name"] for one in OBJECTS[kind, name]["spec"]["template"]["spec"]["containers"]}
    assert {one["name"] for one in keys(patch)["spec"]["template"]["spec"]["containers"]} <= existing
