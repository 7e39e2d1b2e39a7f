"""Commands of the page on Contrail API servers, from the installation to the last step of the way off, by kubectl.

Those that wait for pods are left out, since nothing runs them here.
"""

import shutil
from pathlib import Path
from typing import Any

import yaml

from tests.support.applied_manifests import documents
from tests.support.documentation import block, blocks
from tests.support.kubectl.client import Kubectl, Object
from tests.support.real_apiserver.server import ApiServer

PAGE = "contrail-api"
FIRST = "contrail-node"
SECOND = "contrail-node-linux"
BASE = Path("deploy/base")
OVERLAY = Path("deploy/overlays/vrouter")
WORKLOADS = "/apis/apps/v1/namespaces/contrail"


def script(beginning: str) -> str:
    """The block of commands that begins so, without those that wait for pods."""
    lines = block(PAGE, beginning).splitlines()
    return "\n".join(line for line in lines if "rollout status" not in line)


def add_second_daemonset(checkout: Path) -> None:
    """Makes the folder of the DaemonSet for nodes that have lost their vrouter, as the page describes it."""
    folder = checkout / "linux"
    folder.mkdir()
    (text,) = blocks(PAGE, language="yaml")
    (checkout / text.partition("\n")[0].removeprefix("# ")).write_text(text)
    for file in (BASE / "node.yaml", OVERLAY / "agent-patch.yaml"):
        shutil.copy(checkout / file, folder)
    objects = documents(checkout / BASE / "configuration.yaml")
    (node,) = (item for item in objects if item["metadata"]["name"] == "contrail-node")
    agent = yaml.safe_load(node["data"]["agent.yaml"])
    node["data"]["agent.yaml"] = yaml.safe_dump({**agent, **documents(checkout / OVERLAY / "agent.yaml")[0]})
    (folder / "configuration.yaml").write_text(yaml.safe_dump_all(objects))


def pods_of(server: ApiServer, workload: str) -> Object:
    """Specification of the pods of a workload."""
    spec: Object = server.ask("GET", f"{WORKLOADS}/{workload}")["spec"]["template"]["spec"]
    return spec


def mounted(pod: Object) -> dict[str, bool]:
    """Whether each container mounts the secret."""
    return {
        each["name"]: any(mount["name"] == "contrail-api" for mount in each["volumeMounts"])
        for each in pod["containers"]
    }


def configuration_of(server: ApiServer, config_map: str, file: str) -> dict[str, Any]:
    stored = server.ask("GET", f"/api/v1/namespaces/contrail/configmaps/{config_map}")
    return dict(yaml.safe_load(stored["data"][file]))


def manager_configuration(server: ApiServer) -> dict[str, Any]:
    return configuration_of(server, "contrail-manager", "manager.yaml")


def test_a_cluster_is_installed_and_moves_off(api_server: ApiServer, kubectl: Kubectl, checkout: Path) -> None:
    (checkout / "cluster").mkdir()
    own = {"resources": [f"../{OVERLAY}"], "patches": [{"path": "manager-configuration.yaml"}]}
    (checkout / "cluster" / "kustomization.yaml").write_text(yaml.safe_dump(own))
    configuration = (checkout / OVERLAY / "manager-configuration.yaml").read_text()
    (checkout / "cluster" / "manager-configuration.yaml").write_text(configuration)
    for name in ("ca.pem", "password"):
        (checkout / name).write_text("content\n")
    kubectl.shell(script("kubectl apply -f deploy/base/namespace.yaml"))
    secret = api_server.ask("GET", "/api/v1/namespaces/contrail/secrets/contrail-api")
    assert secret["data"].keys() == {"ca.pem", "password"}
    assert mounted(pods_of(api_server, "deployments/contrail-manager")) == {"manager": True}
    assert mounted(pods_of(api_server, "daemonsets/contrail-node")) == {"cnid": False, "installer": False}
    assert manager_configuration(api_server)["store"]["kind"] == "vnc"

    add_second_daemonset(checkout)
    kubectl("apply", "-k", "linux")
    assert mounted(pods_of(api_server, f"daemonsets/{SECOND}")) == {"agent": True, "cnid": False, "installer": False}
    assert configuration_of(api_server, SECOND, "agent.yaml")["store"]["kind"] == "vnc"
    volumes = {each["name"]: each for each in pods_of(api_server, f"daemonsets/{SECOND}")["volumes"]}
    assert volumes["configuration"]["configMap"]["name"] == SECOND
    labels = [api_server.ask("GET", f"{WORKLOADS}/daemonsets/{name}")["spec"]["selector"] for name in (FIRST, SECOND)]
    assert labels[0] != labels[1]
    kubectl.shell(script("kubectl -n contrail patch daemonset contrail-node --patch"))
    api_server.ask("POST", "/api/v1/nodes", {"metadata": {"name": "node-7"}})
    kubectl.shell(script("kubectl drain NODE").replace("NODE", "node-7"))
    node = api_server.ask("GET", "/api/v1/nodes/node-7")
    assert pods_of(api_server, f"daemonsets/{SECOND}")["nodeSelector"].items() <= node["metadata"]["labels"].items()
    (term,) = pods_of(api_server, "daemonsets/contrail-node")["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert [(each["key"] in node["metadata"]["labels"], each["operator"]) for each in term["matchExpressions"]] == [
        (True, "DoesNotExist")
    ]
    assert not node["spec"].get("unschedulable")

    kubectl("-n", "contrail", "scale", "deployment", "contrail-manager", "--replicas=0")
    kubectl("apply", "-k", "deploy/overlays/standalone")
    assert manager_configuration(api_server)["store"] == {"kind": "kubernetes"}
    assert api_server.ask("GET", f"{WORKLOADS}/deployments/contrail-manager")["spec"]["replicas"] == 2
    assert "affinity" in pods_of(api_server, "daemonsets/contrail-node"), "two agents would run on the node"
