"""Decoding of API objects: what the manager needs is decoded, and nothing else is kept."""

import uuid
from typing import Any, TypeVar

import msgspec
import pytest

from contrail_config.kube.decoding import decode_object
from contrail_config.kube.resource import Resource
from manager.kubernetes import wire
from manager.kubernetes.objects import make_nad, make_namespace, make_pod
from manager.mapping.annotations import network_annotations
from manager.source import Pod
from tests.manager.kubernetes.conftest import Follow
from tests.support.cluster_objects import NO_SANDBOX, ClusterObjects

T = TypeVar("T", wire.PodObject, wire.NadObject, wire.NamespaceObject)

NETWORKS = {
    "k8s.v1.cni.cncf.io/networks": "net-a",
    "v1.multus-cni.io/default-network": "net-b",
    "opencontrail.org/network": "{}",
    "opencontrail.org/default-gw": "eth1",
}


async def test_a_pod_has_all_annotations_that_select_networks(follow: Follow, objects: ClusterObjects) -> None:
    objects.add_pod("web-0", annotations=NETWORKS)
    recorded = await follow()
    await recorded.until_listed()
    pod = recorded.pod("web-0")
    assert network_annotations(pod) == NETWORKS
    every = dict.fromkeys(
        ["k8s.v1.cni.cncf.io/networks", "opencontrail.org/network", "opencontrail.org/default-gw"], ""
    )
    assert network_annotations(make_pod(_pod({"metadata": {"annotations": every}}))) == every


async def test_other_annotations_are_not_kept(follow: Follow, objects: ClusterObjects) -> None:
    objects.add_pod("web-0", annotations={"of/others": "x" * 2_000_000, **NETWORKS})
    recorded = await follow()
    await recorded.until_listed()
    assert recorded.pod("web-0").annotations == NETWORKS
    kept = recorded.source.pod("blue", "web-0")
    assert "x" * 100 not in repr(kept)


@pytest.mark.parametrize(
    ("status", "gone"),
    [
        ({}, False),
        ({"phase": "Running", "conditions": NO_SANDBOX["conditions"]}, False),
        ({"phase": "Succeeded"}, False),
        ({"phase": "Succeeded", "conditions": None}, False),
        (NO_SANDBOX, True),
        ({**NO_SANDBOX, "phase": "Failed"}, True),
        ({**NO_SANDBOX, "conditions": [{"type": "PodReadyToStartContainers", "status": "True"}]}, False),
        ({**NO_SANDBOX, "conditions": [{"type": "PodReadyToStartContainers", "status": "Unknown"}]}, False),
        ({**NO_SANDBOX, "conditions": [{"type": "Ready", "status": "False"}]}, False),
    ],
)
def test_a_pod_is_gone_once_it_ended_and_its_sandbox_is_removed(status: dict[str, object], gone: bool) -> None:
    assert make_pod(_pod({"status": status})).gone is gone


CONTAINERS = [{"name": "main", "state": {"terminated": {"exitCode": 1}}}]
SANDBOX = [{"type": "PodReadyToStartContainers", "status": "True"}]


@pytest.mark.parametrize(
    ("status", "rejected"),
    [
        ({"phase": "Failed", "reason": "NodeAffinity", "message": "Pod was rejected"}, True),
        ({"phase": "Failed", "reason": "OutOfcpu", "conditions": [{"type": "PodScheduled", "status": "True"}]}, True),
        ({"phase": "Failed", "reason": "Evicted", "containerStatuses": CONTAINERS}, False),
        ({"phase": "Failed", "reason": "Evicted", "initContainerStatuses": CONTAINERS}, False),
        ({"phase": "Failed", "conditions": SANDBOX}, False),
        ({"phase": "Failed", "containerStatuses": [], "initContainerStatuses": None}, True),
        ({"phase": "Pending"}, False),
        ({"phase": "Succeeded"}, False),
        ({}, False),
    ],
)
def test_a_pod_is_rejected_if_it_failed_without_a_trace_of_a_start(status: dict[str, object], rejected: bool) -> None:
    pod = make_pod(_pod({"status": status}))
    assert (pod.rejected, pod.gone) == (rejected, False)


def test_container_statuses_cost_no_memory_per_pod() -> None:
    one, other = (_pod({"status": {"containerStatuses": CONTAINERS * number}}) for number in (1, 3))
    assert one.status.container_statuses is other.status.container_statuses


def test_a_static_pod_has_the_hash_of_its_manifest() -> None:
    annotations = {
        "kubernetes.io/config.hash": "5d41402abc4b2a76b9719d911017c592",
        "kubernetes.io/config.mirror": "5d41402abc4b2a76b9719d911017c592",
        "kubernetes.io/config.source": "file",
    }
    pod = make_pod(_pod({"metadata": {"annotations": annotations}}))
    assert pod.config_hash == "5d41402abc4b2a76b9719d911017c592"
    assert make_pod(_pod({})).config_hash is None


def test_a_host_network_pod_is_recognized() -> None:
    assert make_pod(_pod({"spec": {"nodeName": "node-1", "hostNetwork": True}})).host_network
    assert not make_pod(_pod({})).host_network


@pytest.mark.parametrize(
    ("stated", "config"),
    [
        ({}, None),
        ({"spec": None}, None),
        ({"spec": {}}, None),
        ({"spec": {"config": None}}, None),
        ({"spec": {"config": ""}}, ""),
        ({"spec": {"config": "{}"}}, "{}"),
        ({"spec": {"config": {"type": "contrail-k8s-cni"}}}, '{"type":"contrail-k8s-cni"}'),
        ({"spec": {"config": 7}}, "7"),
        ({"spec": "text"}, "text"),
        ({"spec": ["a"]}, '["a"]'),
    ],
)
def test_any_nad_spec_that_a_crd_admits_is_decoded(stated: dict[str, object], config: str | None) -> None:
    assert make_nad(_nad(stated)).config == config


def test_a_nad_spec_that_cannot_be_encoded_is_left_to_the_parser() -> None:
    config: list[Any] = []
    for _ in range(20_000):
        config = [config]
    nad = make_nad(wire.NadObject(wire.NadMetadata(name="one", namespace="blue"), {"config": config}))
    assert nad.config == "nested too deeply"  # no JSON


def test_a_nad_has_all_annotations_that_describe_its_network() -> None:
    keys = ["cidr", "gateway", "exclude", "network", "ip_fabric_snat", "ip_fabric_forwarding", "forwarding-mode"]
    annotations = {f"opencontrail.org/{key}": f"of {key}" for key in keys}
    nad = make_nad(_nad({"metadata": {"annotations": {**annotations, "of/others": "x"}}}))
    assert nad.annotations == annotations
    assert nad.key == "blue/one"


def test_a_namespace_has_all_annotations_that_select_a_network() -> None:
    keys = ["network", "isolation", "ip_fabric_snat", "ip_fabric_forwarding"]
    annotations = {f"opencontrail.org/{key}": f"of {key}" for key in keys}
    stated = {"metadata": {"name": "blue", "annotations": {**annotations, "of/others": "x"}}}
    assert make_namespace(_decoded(wire.NamespaceObject, stated)).annotations == annotations
    assert make_namespace(_decoded(wire.NamespaceObject, {"metadata": {"name": "blue"}})).annotations == {}


def test_the_uid_of_a_pod_is_the_servers() -> None:
    uid = str(uuid.uuid4())
    pod = make_pod(_pod({"metadata": {"uid": uid}}))
    assert pod == Pod(namespace="blue", name="one", uid=uid, node="node-1", annotations={})


def _pod(stated: dict[str, object]) -> wire.PodObject:
    return _decoded(wire.PodObject, {"spec": {"nodeName": "node-1"}, **stated})


def _nad(stated: dict[str, object]) -> wire.NadObject:
    return _decoded(wire.NadObject, stated)


def _decoded(kind: type[T], stated: dict[str, Any]) -> T:
    metadata = {"name": "one", "namespace": "blue", "uid": "", **stated.get("metadata", {})}
    resource = Resource("", "v1", kind.__name__, "", kind)
    found = decode_object(msgspec.json.encode({**stated, "metadata": metadata}), resource)
    assert isinstance(found, kind)
    return found
