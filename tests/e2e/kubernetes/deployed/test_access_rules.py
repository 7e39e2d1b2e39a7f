"""RBAC rules in `deploy/base`: exactly the rights of manager and agent; processes name a missing right.

The other tests of this folder show that the rights suffice, since their processes use these accounts.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.kubernetes.deployed.cluster import NAMESPACE, Cluster, Tenant, wait_until
from tests.support.applied_manifests import MANIFESTS, collection, documents
from tests.support.cluster_processes import AgentProcess, ManagerProcess, running
from tests.support.served_process import ServedProcess

OURS = "opencontrail.org"
CNI = "k8s.cni.cncf.io"
RBAC = "rbac.authorization.k8s.io"
CRD = "apiextensions.k8s.io"
LEASES = "coordination.k8s.io"
FILES = {"contrail-manager": "manager-access.yaml", "contrail-agent": "agent-access.yaml"}
GROUP_OF = {
    "pods": "",
    "namespaces": "",
    "network-attachment-definitions": CNI,
    "leases": LEASES,
    "virtualmachines": OURS,
    "customresourcedefinitions": CRD,
}
NAMED = {"leases": (NAMESPACE, "contrail-manager"), "customresourcedefinitions": ("", f"virtualmachines.{OURS}")}
ALL_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


class Target(NamedTuple):
    """The target of a request; without a namespace, all namespaces."""

    group: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


ALLOWED: dict[str, dict[Target, set[str]]] = {
    "contrail-manager": {
        Target("", "namespaces"): {"list", "watch", "create"},
        Target("", "pods"): {"list", "watch"},
        Target("", "nodes"): {"list", "watch"},
        Target("", "pods", subresource="status"): {"patch"},
        Target("", "events"): {"get", "list", "create", "patch"},
        Target(CNI, "network-attachment-definitions"): {"list", "watch"},
        Target(OURS, "virtualmachines"): {"get", "list", "watch", "create", "update", "delete"},
        Target(OURS, "virtualnetworks"): {"get", "list", "watch", "create", "update", "delete"},
        Target(OURS, "addressblocks"): {"get", "list", "watch", "create", "update", "delete"},
        Target(OURS, "networkslices"): {"list", "watch", "create", "patch", "delete"},
        Target(OURS, "contrailnodes"): {"list", "watch", "delete"},
        Target(CRD, "customresourcedefinitions"): {"create"},
        Target(CRD, "customresourcedefinitions", name=f"virtualmachines.{OURS}"): {"get", "create"},
        Target(CRD, "customresourcedefinitions", name="others.example.org"): {"create"},
        Target(LEASES, "leases", namespace=NAMESPACE, name="contrail-manager"): {"get", "patch", "create"},
        Target(LEASES, "leases", namespace=NAMESPACE, name="other"): {"create"},
        Target(LEASES, "leases", namespace="kube-system"): set(),
    },
    "contrail-agent": {
        Target("", "namespaces"): set(),
        Target("", "pods"): set(),
        Target("", "nodes"): set(),
        Target("", "pods", subresource="status"): set(),
        Target("", "events"): set(),
        Target(CNI, "network-attachment-definitions"): set(),
        Target(OURS, "virtualmachines"): {"list", "watch"},
        Target(OURS, "virtualnetworks"): set(),
        Target(OURS, "addressblocks"): set(),
        Target(OURS, "networkslices"): {"list", "watch"},
        Target(OURS, "contrailnodes"): {"get", "create", "update"},
        Target(CRD, "customresourcedefinitions"): set(),
        Target(LEASES, "leases", namespace=NAMESPACE): set(),
    },
}
ALLOWED_TO_NEITHER = (
    Target("", "secrets"),
    Target("", "secrets", namespace=NAMESPACE),
    Target("", "configmaps", namespace=NAMESPACE),
    Target("", "nodes"),
    Target("", "pods", subresource="exec"),
    Target("", "pods", subresource="eviction"),
    Target("", "serviceaccounts", subresource="token", namespace=NAMESPACE),
    Target("apps", "deployments", namespace=NAMESPACE),
    Target("apps", "daemonsets", namespace=NAMESPACE),
    Target(RBAC, "clusterroles"),
    Target(RBAC, "clusterrolebindings"),
)


@pytest.mark.parametrize("account", ALLOWED)
def test_each_account_has_exactly_these_rights(cluster: Cluster, account: str) -> None:
    wanted = {target: ALLOWED[account].get(target, set()) for target in (*ALLOWED[account], *ALLOWED_TO_NEITHER)}
    found = {target: {verb for verb in ALL_VERBS if may(cluster, account, verb, target)} for target in wanted}
    assert found == wanted


def may(cluster: Cluster, account: str, verb: str, target: Target) -> bool:
    """Whether the account has the right."""
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"]
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{NAMESPACE}:{account}",
            "groups": groups,
            "resourceAttributes": {"verb": verb, **target._asdict()},
        },
    }
    answer = cluster.server.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


@contextmanager
def without(cluster: Cluster, account: str, verb: str, resource: str) -> Iterator[None]:
    """Takes one right from the account until the context is left."""
    roles = [item for item in documents(MANIFESTS / FILES[account]) if "rules" in item]
    for role in roles:
        put_rules(cluster, role, [left for rule in role["rules"] for left in _narrowed(rule, verb, resource)])
    target = Target(GROUP_OF[resource], resource, *NAMED.get(resource, ()))
    wait_until(lambda: not may(cluster, account, verb, target), what="the right is taken")
    try:
        yield
    finally:
        for role in roles:
            put_rules(cluster, role, role["rules"])
        wait_until(lambda: may(cluster, account, verb, target), what="the right is granted again")


def put_rules(cluster: Cluster, role: dict[str, Any], rules: list[dict[str, Any]]) -> None:
    path = f"{collection(cluster.server, role)}/{role['metadata']['name']}"
    cluster.server.ask("PATCH", path, {"rules": rules})


def _narrowed(rule: dict[str, Any], verb: str, resource: str) -> list[dict[str, Any]]:
    """Splits a rule into rules without one right."""
    if resource not in rule["resources"]:
        return [rule]
    others = {**rule, "resources": [each for each in rule["resources"] if each != resource]}
    left = {**rule, "resources": [resource], "verbs": [each for each in rule["verbs"] if each != verb]}
    return [each for each in (others, left) if each["resources"] and each["verbs"]]


@contextmanager
def launched(process: ServedProcess) -> Iterator[None]:
    """Starts the process without waiting, and kills it when the context is left."""
    process.launch()
    try:
        yield
    finally:
        process.kill()


def reports_missing_right(process: ServedProcess, verb: str, resource: str) -> bool:
    status, answer = process.ask("/readyz")
    return status == 503 and f'cannot {verb} resource "{resource}"' in str(answer)


@pytest.mark.parametrize(
    ("verb", "resource"),
    [("list", "pods"), ("list", "namespaces"), ("list", "network-attachment-definitions"), ("get", "leases")],
)
def test_a_manager_without_a_right_is_not_ready_and_names_it(
    cluster: Cluster, tmp_path: Path, verb: str, resource: str
) -> None:
    manager = ManagerProcess(tmp_path, cluster.kubeconfig("contrail-manager"), lease_namespace=NAMESPACE)
    with without(cluster, "contrail-manager", verb, resource), launched(manager):
        manager.wait_until(lambda: reports_missing_right(manager, verb, resource), what="reporting the missing right")
        assert manager.stop() == 0


def test_a_leader_whose_writes_stay_forbidden_becomes_unready_and_names_the_right(
    cluster: Cluster, tenant: Tenant, tmp_path: Path
) -> None:
    manager = ManagerProcess(tmp_path, cluster.kubeconfig("contrail-manager"), lease_namespace=NAMESPACE)
    with without(cluster, "contrail-manager", "create", "virtualmachines"), running(manager):
        manager.wait_until_it_leads()
        tenant.add_pod("web-0", node="node-1")
        manager.wait_until(
            lambda: reports_missing_right(manager, "create", "virtualmachines"),
            what="reporting the missing right",
        )
        assert manager.stop() == 0


def test_a_manager_that_may_not_read_crds_exits_with_one_line(cluster: Cluster, tmp_path: Path) -> None:
    manager = ManagerProcess(tmp_path, cluster.kubeconfig("contrail-manager"), lease_namespace=NAMESPACE)
    with without(cluster, "contrail-manager", "get", "customresourcedefinitions"), launched(manager):
        assert manager.ended() == 1
    last = manager.log.read_text().splitlines()[-1]
    assert last.startswith("contrail-manager: CustomResourceDefinition ")
    assert 'cannot get resource "customresourcedefinitions"' in last


def test_an_agent_without_a_right_is_not_ready_and_names_it(cluster: Cluster, tmp_path: Path) -> None:
    agent = AgentProcess(tmp_path, cluster.agent_kubeconfig("node-1"), node="node-1")
    with without(cluster, "contrail-agent", "list", "virtualmachines"), launched(agent):
        agent.wait_until(
            lambda: reports_missing_right(agent, "list", "virtualmachines"), what="reporting the missing right"
        )
        assert agent.stop() == 0
