"""Paths of resources, and arguments that make no path."""

import pytest

from contrail_config.kube.resource import Resource
from tests.support.config_maps import ConfigMap

PODS = Resource("", "v1", "Pod", "pods", ConfigMap)
NODES = Resource("", "v1", "Node", "nodes", ConfigMap, namespaced=False)
NADS = Resource("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions", ConfigMap)


@pytest.mark.parametrize(
    ("resource", "place", "path"),
    [
        (PODS, (), "/api/v1/pods"),
        (PODS, ("ns",), "/api/v1/namespaces/ns/pods"),
        (PODS, ("ns", "p"), "/api/v1/namespaces/ns/pods/p"),
        (PODS, ("ns", "p", "status"), "/api/v1/namespaces/ns/pods/p/status"),
        (NODES, (), "/api/v1/nodes"),
        (NODES, ("", "n"), "/api/v1/nodes/n"),
        (NADS, ("ns",), "/apis/k8s.cni.cncf.io/v1/namespaces/ns/network-attachment-definitions"),
        (NODES, ("", "system:node"), "/api/v1/nodes/system:node"),
        (NODES, ("", "../x?y=z"), "/api/v1/nodes/..%2Fx%3Fy%3Dz"),
    ],
)
def test_each_object_and_collection_has_its_path(
    resource: Resource[ConfigMap], place: tuple[str, ...], path: str
) -> None:
    assert resource.path(*place) == path


def test_the_api_version_contains_the_group() -> None:
    assert (PODS.api_version, NADS.api_version) == ("v1", "k8s.cni.cncf.io/v1")


@pytest.mark.parametrize(("resource", "place"), [(PODS, ("", "p")), (NODES, ("ns", "n")), (NODES, ("ns",))])
def test_a_missing_or_unexpected_namespace_is_an_error(resource: Resource[ConfigMap], place: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        resource.path(*place)
