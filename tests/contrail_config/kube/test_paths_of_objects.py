"""Where objects are served, and what is no path."""

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
def test_each_place_has_its_path(resource: Resource[ConfigMap], place: tuple[str, ...], path: str) -> None:
    assert resource.path(*place) == path


def test_the_version_is_said_with_its_group() -> None:
    assert (PODS.api_version, NADS.api_version) == ("v1", "k8s.cni.cncf.io/v1")


@pytest.mark.parametrize(("resource", "place"), [(PODS, ("", "p")), (NODES, ("ns", "n")), (NODES, ("ns",))])
def test_a_namespace_that_is_missing_or_out_of_place_is_a_mistake(
    resource: Resource[ConfigMap], place: tuple[str, ...]
) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        resource.path(*place)
