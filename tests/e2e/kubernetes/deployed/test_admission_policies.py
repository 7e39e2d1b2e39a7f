"""Admission policies in `deploy/base`: who may write which object, whatever RBAC grants.

The other tests of this folder show that managers and agents can work under these policies.
"""

import contextlib
import uuid
from collections.abc import Callable, Iterator
from typing import Any
from urllib.error import HTTPError

import msgspec
import pytest

from contrail_config.kube.resource import Resource
from contrail_config.kubernetes.blocks import AddressEntry, Block, BlockKey, PoolKey
from contrail_config.kubernetes.crds import crds
from contrail_config.kubernetes.kinds import (
    ADDRESS_BLOCKS,
    CONTRAIL_NODES,
    NETWORK_SLICES,
    VIRTUAL_MACHINES,
    VIRTUAL_NETWORKS,
    NodeReport,
    network_slice_object,
    virtual_machine_object,
    virtual_network_object,
)
from contrail_config.kubernetes.network_buckets import network_bucket
from contrail_config.kubernetes.node_buckets import node_bucket
from contrail_config.objects import NetworkSlice
from tests.e2e.kubernetes.deployed.cluster import NAMESPACE, Cluster, Object, wait_until
from tests.support.applied_manifests import apply
from tests.support.virtual_machines import make_virtual_machine
from tests.support.virtual_networks import make_network, new_owner

_FORBIDDEN = 403
CONTROLLERS = ("namespace-controller", "generic-garbage-collector")


def a_network() -> Object:
    return as_object(VIRTUAL_NETWORKS, virtual_network_object(make_network(f"n-{uuid.uuid4().hex[:8]}", vni=7)))


def a_block() -> Object:
    key = BlockKey(PoolKey(new_owner(), 4), 0x0A010000)
    return as_object(ADDRESS_BLOCKS, Block(key, entries={0x0A010002: AddressEntry(new_owner())}).to_object())


def a_slice() -> Object:
    made = NetworkSlice(SLICED, NODE, ("default-domain", "k8s-default", "blue"), 7)
    return as_object(NETWORK_SLICES, network_slice_object(made))


def a_report(node: str) -> Object:
    report = NodeReport("2026-11-21T12:00:00Z", "instance")
    kind = {"apiVersion": CONTRAIL_NODES.api_version, "kind": CONTRAIL_NODES.kind}
    return {**kind, "metadata": {"name": node}, "status": msgspec.to_builtins(report)}


def as_object(resource: Resource[Any], item: Any) -> Object:
    values: Object = msgspec.to_builtins(item)
    return {"apiVersion": resource.api_version, "kind": resource.kind, **values}


def a_virtual_machine() -> Object:
    return as_object(
        VIRTUAL_MACHINES, virtual_machine_object(make_virtual_machine(f"p-{uuid.uuid4().hex[:8]}", node=NODE))
    )


NODE = "node-1"
BUCKET = node_bucket(NODE)
SLICED = str(uuid.UUID(int=7))
NETWORK_BUCKET = network_bucket(SLICED)
SYSTEM_OBJECTS = {
    VIRTUAL_MACHINES.path(BUCKET): a_virtual_machine,
    VIRTUAL_NETWORKS.path(): a_network,
    ADDRESS_BLOCKS.path(): a_block,
    NETWORK_SLICES.path(NETWORK_BUCKET): a_slice,
}


@pytest.fixture(scope="module")
def manager_token(cluster: Cluster) -> str:
    return cluster.server.service_account_token(NAMESPACE, "contrail-manager")


@pytest.fixture(scope="module", autouse=True)
def _in_force(cluster: Cluster) -> None:
    """The kinds are served, and both policies are in force."""
    names = (BUCKET, NETWORK_BUCKET)
    buckets = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]
    apply(cluster.server, *buckets, *crds().values())
    for resource, item in ((VIRTUAL_NETWORKS, a_network()), (CONTRAIL_NODES, a_report("none"))):
        wait_until(lambda resource=resource: is_served(cluster, resource), what="served")  # type: ignore[misc]
        path = f"{resource.path()}?dryRun=All"
        wait_until(lambda path=path, item=item: refusal(cluster, "POST", path, item) != "", what="in force")  # type: ignore[misc]


def is_served(cluster: Cluster, resource: Resource[Any]) -> bool:
    try:
        cluster.server.ask("GET", resource.path())
    except HTTPError as error:
        error.close()
        return False
    return True


def refusal(cluster: Cluster, method: str, path: str, body: Any = None, *, token: str | None = None) -> str:
    """The message with which the server rejects the request for lack of permission; empty if it accepts it."""
    given = {} if token is None else {"token": token}
    try:
        cluster.server.ask(method, path, body, **given)
    except HTTPError as error:
        if error.code != _FORBIDDEN:
            raise
        return error.read().decode()
    return ""


@pytest.fixture(params=SYSTEM_OBJECTS)
def written(cluster: Cluster, manager_token: str, request: pytest.FixtureRequest) -> Iterator[tuple[str, Object]]:
    """Path of the collection, and an object in it that the manager has written."""
    path: str = request.param
    make: Callable[[], Object] = SYSTEM_OBJECTS[path]
    stored = cluster.server.ask("POST", path, make(), token=manager_token)
    yield path, stored
    with contextlib.suppress(HTTPError):  # the test has deleted it
        cluster.server.ask("DELETE", f"{path}/{stored['metadata']['name']}", token=manager_token)


def another(collection: str) -> Object:
    """A new object of the collection."""
    return SYSTEM_OBJECTS[collection]()


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_the_administrator_writes_no_object_of_the_system(
    cluster: Cluster, written: tuple[str, Object], method: str
) -> None:
    collection, stored = written
    path = collection if method == "POST" else f"{collection}/{stored['metadata']['name']}"
    body = {"POST": stored, "PUT": stored, "PATCH": {"metadata": {"labels": {"a": "b"}}}}.get(method)
    if method == "POST":
        body = another(collection)
    assert "only the service account contrail/contrail-manager may write" in refusal(cluster, method, path, body)


def test_the_administrator_deletes_no_collection_of_the_system(cluster: Cluster, written: tuple[str, Object]) -> None:
    collection, stored = written
    assert "contrail-manager may write" in refusal(cluster, "DELETE", collection)
    assert cluster.server.ask("GET", f"{collection}/{stored['metadata']['name']}")["metadata"] == stored["metadata"]


def test_the_manager_changes_and_deletes_them(
    cluster: Cluster, written: tuple[str, Object], manager_token: str
) -> None:
    collection, stored = written
    path = f"{collection}/{stored['metadata']['name']}"
    patches = collection == NETWORK_SLICES.path(NETWORK_BUCKET)  # it replaces all others
    method, body = ("PATCH", {"metadata": {"labels": {"a": "b"}}}) if patches else ("PUT", stored)
    assert refusal(cluster, method, path, body, token=manager_token) == ""
    assert refusal(cluster, "DELETE", path, token=manager_token) == ""


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_controllers_delete_but_do_not_create(cluster: Cluster, written: tuple[str, Object], controller: str) -> None:
    collection, stored = written
    token = controller_token(cluster, controller)
    assert "contrail-manager may write" in refusal(cluster, "POST", collection, another(collection), token=token)
    assert refusal(cluster, "DELETE", f"{collection}/{stored['metadata']['name']}", token=token) == ""


def controller_token(cluster: Cluster, name: str) -> str:
    """Token of a controller's account, which here has all rights that RBAC can grant."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "kube-system"}}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"all-{name}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "kube-system"}],
    }
    apply(cluster.server, account, binding)
    token = cluster.server.service_account_token("kube-system", name)
    wait_until(lambda: refusal(cluster, "GET", "/api/v1/nodes", token=token) == "", what="the rights are in force")
    return token


REPORTS = CONTRAIL_NODES.path()


@pytest.fixture
def reported(cluster: Cluster, manager_token: str) -> Iterator[Object]:
    """The report of the node `reporting`, written by its agent."""
    token = cluster.agent_token("reporting")
    yield cluster.server.ask("POST", REPORTS, a_report("reporting"), token=token)
    cluster.server.ask("DELETE", f"{REPORTS}/reporting", token=manager_token)


def test_an_agent_writes_the_report_of_its_node(cluster: Cluster, reported: Object) -> None:
    token = cluster.agent_token("reporting")
    assert refusal(cluster, "PUT", f"{REPORTS}/reporting", reported, token=token) == ""


def test_an_agent_writes_no_report_of_another_node(cluster: Cluster, reported: Object) -> None:
    token = cluster.agent_token("other")
    for method, path in (("POST", REPORTS), ("PUT", f"{REPORTS}/reporting")):
        body = a_report("new") if method == "POST" else reported
        found = refusal(cluster, method, path, body, token=token)
        assert "only that of its own node: the token is of node other" in found


@pytest.mark.parametrize("account", ["contrail-agent", None])
def test_a_token_without_a_node_writes_no_report(cluster: Cluster, reported: Object, account: str | None) -> None:
    token = None if account is None else cluster.server.service_account_token(NAMESPACE, account)
    found = refusal(cluster, "PUT", f"{REPORTS}/reporting", reported, token=token)
    assert "the token names no node" in found


def test_another_account_on_the_node_writes_no_report(cluster: Cluster, reported: Object) -> None:
    name = {"name": "tenant", "namespace": NAMESPACE}
    apply(cluster.server, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": name})
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "tenant-reports"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", **name}],
    }
    apply(cluster.server, binding)
    token = cluster.agent_token("reporting", account="tenant")
    wait_until(
        lambda: "may write a node report" in refusal(cluster, "PUT", f"{REPORTS}/reporting", reported, token=token),
        what="refused by the policy",
    )


def test_only_the_manager_deletes_reports(cluster: Cluster, reported: Object) -> None:
    assert "may delete node reports" in refusal(cluster, "DELETE", f"{REPORTS}/{reported['metadata']['name']}")
