"""The rules in `deploy/kubernetes` allow what manager and agent do, and nothing more; what is missing is named.

That what is allowed suffices is shown by all other tests of this folder, whose processes act for these accounts.
"""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.kubernetes.deployed.cluster import NAMESPACE, Cluster, Tenant, wait_until
from tests.support.applied_manifests import MANIFESTS, apply, documents
from tests.support.cluster_processes import AgentProcess, ManagerProcess, running
from tests.support.served_process import ServedProcess

OURS = "opencontrail.org"
CNI = "k8s.cni.cncf.io"
RBAC = "rbac.authorization.k8s.io"
CRD = "apiextensions.k8s.io"
LEASES = "coordination.k8s.io"
FILES = {"contrail-manager": "10-manager-access.yaml", "contrail-agent": "11-agent-access.yaml"}
ALL_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


class Thing(NamedTuple):
    """What somebody may want to touch; every namespace is meant if none is given."""

    group: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


ALLOWED: dict[str, dict[Thing, set[str]]] = {
    "contrail-manager": {
        Thing("", "namespaces"): {"list", "watch"},
        Thing("", "pods"): {"list", "watch"},
        Thing("", "pods", subresource="status"): {"patch"},
        Thing("", "events"): {"get", "list", "create", "patch"},
        Thing(CNI, "network-attachment-definitions"): {"list", "watch"},
        Thing(OURS, "virtualmachines"): {"get", "list", "watch", "create", "update", "delete"},
        Thing(OURS, "virtualnetworks"): {"get", "list", "watch", "create", "update", "delete"},
        Thing(OURS, "addressblocks"): {"get", "list", "watch", "create", "update", "delete"},
        Thing(OURS, "contrailnodes"): {"list", "watch", "delete"},
        Thing(CRD, "customresourcedefinitions"): {"create"},
        Thing(CRD, "customresourcedefinitions", name=f"virtualmachines.{OURS}"): {"get", "create"},
        Thing(CRD, "customresourcedefinitions", name="others.example.org"): {"create"},
        Thing(LEASES, "leases", namespace=NAMESPACE, name="contrail-manager"): {"get", "patch", "create"},
        Thing(LEASES, "leases", namespace=NAMESPACE, name="other"): {"create"},
        Thing(LEASES, "leases", namespace="kube-system"): set(),
    },
    "contrail-agent": {
        Thing("", "namespaces"): set(),
        Thing("", "pods"): set(),
        Thing("", "pods", subresource="status"): set(),
        Thing("", "events"): set(),
        Thing(CNI, "network-attachment-definitions"): set(),
        Thing(OURS, "virtualmachines"): {"list", "watch"},
        Thing(OURS, "virtualnetworks"): set(),
        Thing(OURS, "addressblocks"): set(),
        Thing(OURS, "contrailnodes"): {"get", "create", "update"},
        Thing(CRD, "customresourcedefinitions"): set(),
        Thing(LEASES, "leases", namespace=NAMESPACE): set(),
    },
}
NOBODYS = (
    Thing("", "secrets"),
    Thing("", "secrets", namespace=NAMESPACE),
    Thing("", "configmaps", namespace=NAMESPACE),
    Thing("", "nodes"),
    Thing("", "pods", subresource="exec"),
    Thing("", "pods", subresource="eviction"),
    Thing("", "serviceaccounts", subresource="token", namespace=NAMESPACE),
    Thing("apps", "deployments", namespace=NAMESPACE),
    Thing("apps", "daemonsets", namespace=NAMESPACE),
    Thing(RBAC, "clusterroles"),
    Thing(RBAC, "clusterrolebindings"),
)


@pytest.mark.parametrize("account", ALLOWED)
def test_each_account_has_exactly_these_rights(cluster: Cluster, account: str) -> None:
    wanted = {thing: ALLOWED[account].get(thing, set()) for thing in (*ALLOWED[account], *NOBODYS)}
    found = {thing: {verb for verb in ALL_VERBS if may(cluster, account, verb, thing)} for thing in wanted}
    assert found == wanted


def may(cluster: Cluster, account: str, verb: str, thing: Thing) -> bool:
    """Whether the server lets the account."""
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"]
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{NAMESPACE}:{account}",
            "groups": groups,
            "resourceAttributes": {"verb": verb, **thing._asdict()},
        },
    }
    answer = cluster.server.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


def account_without(cluster: Cluster, account: str, verb: str, resource: str) -> str:
    """Makes an account that may do all that this one may but for one thing, and returns its name."""
    name = f"{account}-without-{verb}-{resource}"
    for item in documents(MANIFESTS / FILES[account]):
        item["metadata"]["name"] = name
        for reference in (item.get("roleRef"), *item.get("subjects", ())):
            if reference is not None:
                reference["name"] = name
        if "rules" in item:
            item["rules"] = [left for rule in item["rules"] for left in _narrowed(rule, verb, resource)]
        apply(cluster.server, item)
    witness = Thing(OURS, "virtualmachines")
    wait_until(lambda: may(cluster, name, "watch", witness), what="the rules are in force")
    return name


def _narrowed(rule: dict[str, Any], verb: str, resource: str) -> list[dict[str, Any]]:
    """The rules that allow what this one does but for one thing."""
    if resource not in rule["resources"]:
        return [rule]
    others = {**rule, "resources": [each for each in rule["resources"] if each != resource]}
    left = {**rule, "resources": [resource], "verbs": [each for each in rule["verbs"] if each != verb]}
    return [each for each in (others, left) if each["resources"] and each["verbs"]]


def says_what_it_lacks(process: ServedProcess, verb: str, resource: str) -> bool:
    status, answer = process.ask("/readyz")
    return status == 503 and f'cannot {verb} resource "{resource}"' in str(answer)


@pytest.mark.parametrize(
    ("verb", "resource"),
    [("list", "pods"), ("list", "namespaces"), ("list", "network-attachment-definitions"), ("get", "leases")],
)
def test_a_manager_without_a_right_is_not_ready_and_names_it(
    cluster: Cluster, tmp_path: Path, verb: str, resource: str
) -> None:
    account = account_without(cluster, "contrail-manager", verb, resource)
    manager = ManagerProcess(tmp_path, cluster.kubeconfig(account), lease_namespace=NAMESPACE)
    manager.launch()
    try:
        manager.wait_until(lambda: says_what_it_lacks(manager, verb, resource), what="saying what it lacks")
        assert manager.stop() == 0
    finally:
        manager.kill()


def test_a_leader_whose_writes_stay_forbidden_becomes_unready_and_names_the_right(
    cluster: Cluster, tenant: Tenant, tmp_path: Path
) -> None:
    account = account_without(cluster, "contrail-manager", "create", "virtualmachines")
    manager = ManagerProcess(tmp_path, cluster.kubeconfig(account), lease_namespace=NAMESPACE)
    with running(manager):
        manager.wait_until_it_leads()
        tenant.add_pod("web-0", node="node-1")
        manager.wait_until(
            lambda: says_what_it_lacks(manager, "create", "virtualmachines"), what="saying what it lacks"
        )
        assert manager.stop() == 0


def test_a_manager_that_may_not_read_crds_exits_with_one_line(cluster: Cluster, tmp_path: Path) -> None:
    account = account_without(cluster, "contrail-manager", "get", "customresourcedefinitions")
    manager = ManagerProcess(tmp_path, cluster.kubeconfig(account), lease_namespace=NAMESPACE)
    manager.launch()
    assert manager.ended() == 1
    last = manager.log.read_text().splitlines()[-1]
    assert last.startswith("contrail-manager: CustomResourceDefinition ")
    assert 'cannot get resource "customresourcedefinitions"' in last


def test_an_agent_without_a_right_is_not_ready_and_names_it(cluster: Cluster, tmp_path: Path) -> None:
    account = account_without(cluster, "contrail-agent", "list", "virtualmachines")
    agent = AgentProcess(tmp_path, cluster.kubeconfig(account), node="node-1")
    agent.launch()
    try:
        agent.wait_until(lambda: says_what_it_lacks(agent, "list", "virtualmachines"), what="saying what it lacks")
        assert agent.stop() == 0
    finally:
        agent.kill()
