"""`deploy/base`: the programs take their configurations, and find what they name.

What the API server makes of the manifests is tried in `tests/e2e/kubernetes`.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_api.configuration import AgentConfiguration, load_agent_configuration
from cni_contrail.daemon.configuration import DaemonConfiguration, load_daemon_configuration
from cni_contrail.settings import Settings
from manager.configuration import (
    KubernetesSourceSettings,
    KubernetesStoreSettings,
    ManagerConfiguration,
    load_manager_configuration,
)
from tests.support.applied_manifests import MANIFESTS, documents

CONFLIST = MANIFESTS.parent / "cni" / "10-contrail.conflist"
OBJECTS = {(item["kind"], item["metadata"]["name"]): item for item in documents(MANIFESTS)}
MANAGER = OBJECTS["Deployment", "contrail-manager"]["spec"]["template"]["spec"]
NODE = OBJECTS["DaemonSet", "contrail-node"]["spec"]["template"]["spec"]
CONTAINERS = {
    item["name"]: item for pod in (MANAGER, NODE) for item in pod.get("initContainers", []) + pod["containers"]
}
ADDED_CAPABILITIES = {
    "cnid": ["NET_ADMIN", "NET_BROADCAST", "SYS_ADMIN"],
    "installer": ["DAC_OVERRIDE"],  # folders of the node may have another owner than root
}
NODE_FILES: dict[str, str] = OBJECTS["ConfigMap", "contrail-node"]["data"]


def written(folder: Path, config_map: str, name: str) -> str:
    """The path of a file of a ConfigMap, as a pod has it mounted."""
    file = folder / name
    file.write_text(OBJECTS["ConfigMap", config_map]["data"][name])
    return str(file)


@pytest.fixture
def manager(tmp_path: Path) -> ManagerConfiguration:
    return load_manager_configuration(written(tmp_path, "contrail-manager", "manager.yaml"))


@pytest.fixture
def agent(tmp_path: Path) -> AgentConfiguration:
    return load_agent_configuration(written(tmp_path, "contrail-node", "agent.yaml"))


@pytest.fixture
def daemon(tmp_path: Path) -> DaemonConfiguration:
    return load_daemon_configuration(written(tmp_path, "contrail-node", "cnid.yaml"))


def test_the_manager_follows_the_cluster_and_leads_where_its_rights_are(manager: ManagerConfiguration) -> None:
    lease = OBJECTS["Role", "contrail-manager"]["metadata"]["namespace"]
    assert manager.source == KubernetesSourceSettings(lease_namespace=lease)
    assert manager.store == KubernetesStoreSettings()


def test_all_agree_on_names_and_sockets(
    manager: ManagerConfiguration, agent: AgentConfiguration, daemon: DaemonConfiguration
) -> None:
    plugin = json.loads(NODE_FILES["cni.json"])
    names = manager.cluster_name, agent.cluster_name, daemon.settings["cluster-name"], plugin["cluster-name"]
    assert set(names) == {"k8s"}
    assert {agent.socket, daemon.settings["agent-socket"], plugin["agent-socket"]} == {"/run/contrail/agent.sock"}
    assert f"{agent.ports_dir}/vm" == Settings().config_dir
    assert daemon.socket == DaemonConfiguration().socket, "where the shim looks for it"


def test_nodes_get_the_network_configuration_of_thick_mode() -> None:
    assert json.loads(NODE_FILES["10-contrail.conflist"]) == json.loads(CONFLIST.read_text())


@pytest.mark.parametrize("name", ["manager", "agent", "cnid"])
def test_probes_ask_where_the_program_listens(
    manager: ManagerConfiguration, agent: AgentConfiguration, daemon: DaemonConfiguration, name: str
) -> None:
    assert daemon.metrics_listen is not None
    listens = {
        "manager": manager.listen,
        "agent": agent.listen,
        "cnid": "{}:{}".format(*daemon.metrics_listen),
    }
    for probe, page in (("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        asked = CONTAINERS[name][probe]["httpGet"]
        assert (f"{asked['host']}:{asked['port']}", asked["path"]) == (listens[name], page)


@pytest.mark.parametrize("pod", [MANAGER, NODE], ids=["manager", "node"])
def test_what_a_container_mounts_is_a_volume_and_holds_its_configuration(pod: dict[str, Any]) -> None:
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for container in pod.get("initContainers", []) + pod["containers"]:
        mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in container["volumeMounts"]}
        for argument in container["command"]:
            folder, _, file = argument.rpartition("/")
            if folder in mounts and file:
                assert file in OBJECTS["ConfigMap", mounts[folder]["configMap"]["name"]]["data"]


@pytest.mark.parametrize("name", CONTAINERS)
def test_no_container_may_more_than_it_needs(name: str) -> None:
    context = CONTAINERS[name]["securityContext"]
    capabilities = context["capabilities"]
    assert not context["allowPrivilegeEscalation"]
    assert context["readOnlyRootFilesystem"]
    assert capabilities["drop"] == ["ALL"]
    assert capabilities.get("add", []) == ADDED_CAPABILITIES.get(name, [])


def test_only_the_agent_of_a_node_has_a_token() -> None:
    assert NODE["automountServiceAccountToken"] is False
    holders = [name for name, item in CONTAINERS.items() if "token" in {each["name"] for each in item["volumeMounts"]}]
    assert holders == ["agent"]
    assert MANAGER["securityContext"]["runAsNonRoot"] is True


def test_the_installer_shares_directories_with_agent_and_daemon() -> None:
    mounted = {mount["name"]: mount["mountPath"] for mount in CONTAINERS["installer"]["volumeMounts"]}
    for name in ("agent", "cnid"):
        of_other = {mount["name"]: mount["mountPath"] for mount in CONTAINERS[name]["volumeMounts"]}
        assert of_other["sockets"] == mounted["sockets"]
        assert of_other["configuration"] == mounted["configuration"]
