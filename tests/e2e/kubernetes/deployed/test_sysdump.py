"""`contrailctl sysdump` on a cluster with the shipped manifests: what is in the archive, and that no secret is."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kubernetes.deployed.cluster import GROUP, Cluster, Tenant, wait_until
from tests.support.applied_manifests import apply
from tests.support.cluster_processes import BINARIES, AgentProcess, ManagerProcess
from tests.support.dump_archive import contents

SECRET = "hunter2-Zm9v"
NODE_POD = "contrail-node-1"

_KUBECTL = """#!/bin/sh
# kubectl --kubeconfig FILE exec --namespace contrail POD --container cnid -- contrailctl ARGUMENTS
[ "$1 $3 $4 $5 $7 $8 $9" = "--kubeconfig exec --namespace contrail --container cnid --" ] || exit 64
[ "$6" = {pod} ] || exit 65
shift 10
exec {contrailctl} "$@" --agent http://{agent} --timeout 5
"""


@pytest.fixture
def folder(tmp_path: Path, agents: tuple[AgentProcess, AgentProcess]) -> Path:
    """A folder with a kubectl, whose commands run where an agent serves but no daemon."""
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(_KUBECTL.format(pod=NODE_POD, contrailctl=BINARIES / "contrailctl", agent=agents[0].listen))
    kubectl.chmod(0o755)
    return tmp_path


@pytest.fixture
def secrets(cluster: Cluster, tenant: Tenant) -> Iterator[None]:
    """Secrets in objects that are dumped and in some that are not; and the pod of a node."""
    space = {"namespace": tenant.namespace}
    container = {"name": "main", "image": "i", "env": [{"name": "HARMLESS", "value": SECRET}]}
    annotations = {"opencontrail.org/note": f"password={SECRET}", "other.example/note": SECRET}
    config = json.dumps({"cniVersion": "1.0.0", "type": "other", "auth": {"password": SECRET}})
    node_pod = {
        "metadata": {
            "name": NODE_POD,
            "namespace": "contrail",
            "labels": {"app.kubernetes.io/name": "contrail-node"},
        },
        "spec": {"nodeName": "node-1", "hostNetwork": True, "containers": [{**container, "name": "cnid"}]},
    }
    objects: list[dict[str, Any]] = [
        {"kind": "Secret", "metadata": {"name": "s", **space}, "stringData": {"a": SECRET}},
        {"kind": "ConfigMap", "metadata": {"name": "c", "namespace": "contrail"}, "data": {"a": f"token: {SECRET}"}},
        {
            "kind": "Pod",
            "metadata": {"name": "web", "labels": {"a": SECRET}, "annotations": annotations, **space},
            "spec": {"nodeName": "node-1", "containers": [container]},
        },
        {"kind": "Pod", **node_pod},
    ]
    apply(cluster.server, *({"apiVersion": "v1", **each} for each in objects))
    nad = {"kind": "NetworkAttachmentDefinition", "metadata": {"name": "n", **space}, "spec": {"config": config}}
    apply(cluster.server, {"apiVersion": "k8s.cni.cncf.io/v1", **nad})
    yield
    cluster.server.ask("DELETE", f"/api/v1/namespaces/contrail/pods/{NODE_POD}?gracePeriodSeconds=0")


def sysdump(cluster: Cluster, folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    file = folder / "dump.tar.gz"
    command = [str(BINARIES / "contrailctl"), "sysdump", "--kubeconfig", str(cluster.server.kubeconfig())]
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    return subprocess.run(
        [*command, "--file", str(file), *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.usefixtures("secrets")
def test_a_dump_has_status_objects_and_nodes_and_no_secret(
    cluster: Cluster, manager: ManagerProcess, tenant: Tenant, folder: Path
) -> None:
    tenant.assigned("web")
    wait_until(lambda: len(cluster.items(f"{GROUP}/contrailnodes")) >= 2, what="both nodes report")
    ended = sysdump(cluster, folder)
    assert (ended.returncode, ended.stderr) == (0, "")
    files = contents(folder / "dump.tar.gz")
    assert [name for name, text in files.items() if SECRET in text] == []
    assert {"README.txt", "problems.txt", "status.txt", "status.json"} <= files.keys()
    assert "Leader: " in files["status.txt"]

    def names(kind: str) -> list[str]:
        return [json.loads(line)["metadata"]["name"] for line in files[f"objects/{kind}.jsonl"].splitlines()]

    assert {"node-1", "node-2"} <= set(names("contrailnodes"))
    assert "web" in names("pods")
    assert "n" in names("network-attachment-definitions")
    assert {"c", "contrail-manager"} <= set(names("installation/configmaps"))
    assert names("virtualmachines")
    assert '"ready": true' in files["nodes/node-1/agent-readyz"].replace('":true', '": true')
    assert "contrail_agent_" in files["nodes/node-1/agent-metrics"]


@pytest.mark.usefixtures("secrets")
def test_what_cannot_be_collected_is_named_and_does_not_end_it(
    cluster: Cluster, manager: ManagerProcess, folder: Path
) -> None:
    ended = sysdump(cluster, folder)
    assert ended.returncode == 0
    problems = contents(folder / "dump.tar.gz")["problems.txt"].splitlines()
    assert any(each.startswith("nodes/node-1: cnid/healthz: ") for each in problems)  # no daemon serves here
    assert any(each.startswith("nodes/node-1/check.json: ") for each in problems)
    for problem in problems:
        assert f"Not collected: {problem}" in ended.stdout.splitlines()


def test_an_existing_file_is_not_replaced(cluster: Cluster, folder: Path) -> None:
    (folder / "dump.tar.gz").write_text("other")
    ended = sysdump(cluster, folder)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert (folder / "dump.tar.gz").read_text() == "other"


def test_an_account_with_few_rights_gets_what_it_may_read(cluster: Cluster, folder: Path) -> None:
    account = cluster.kubeconfig("contrail-agent")
    ended = sysdump(cluster, folder, "--kubeconfig", str(account))
    assert ended.returncode == 0
    assert "Not collected: status, logs, nodes: " in ended.stdout
    assert "Not collected: objects/nodes: " in ended.stdout
    assert "objects/virtualmachines.jsonl" in contents(folder / "dump.tar.gz")
