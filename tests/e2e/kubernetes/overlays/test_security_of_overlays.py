"""What kustomize makes of the overlays: rights of pods on their nodes, and no data."""

import functools
import re
from typing import Any

import pytest

from tests.docs.test_security_lists_the_rights_of_each_part import documented
from tests.support.documentation import code
from tests.support.kubectl.client import ALL_OVERLAYS, OVERLAYS, Object, built, key

RIGHTS = {code(row[0])[0]: row[1:] for row in documented("Container")}
"""User, capabilities, rights on the API server and host paths of each container, as the page on security has them."""

OF_MULTUS = {
    ("ServiceAccount", "kube-system", "multus"),
    ("ClusterRole", "", "multus"),
    ("ClusterRoleBinding", "", "multus"),
    ("ConfigMap", "kube-system", "multus-cni-config"),
    ("ConfigMap", "kube-system", "multus-daemon-config"),
    ("DaemonSet", "kube-system", "kube-multus-ds"),
}

pytestmark = pytest.mark.parametrize("overlay", ALL_OVERLAYS)


@functools.cache
def objects(overlay: str) -> list[Object]:
    """The objects of an overlay, without those of Multus."""
    return [item for item in built(OVERLAYS / overlay) if key(item) not in OF_MULTUS]


def pods(overlay: str) -> dict[str, Any]:
    """Specifications of pods by the name of their controller."""
    return {
        item["metadata"]["name"]: item["spec"]["template"]["spec"]
        for item in objects(overlay)
        if item["kind"] in ("Deployment", "DaemonSet")
    }


def containers(pod: Any) -> list[Any]:
    return [*pod.get("initContainers", []), *pod["containers"]]


def test_each_container_has_the_rights_that_it_needs_and_no_other(overlay: str) -> None:
    for pod in pods(overlay).values():
        for container in containers(pod):
            user, added, *_ = RIGHTS[container["name"]]
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"], **({} if added == "none" else {"add": added.split(", ")})},
                **({"runAsUser": 0} if user == "root" else {}),
            }


def test_pods_share_no_namespace_of_the_host_but_its_network(overlay: str) -> None:
    for pod in pods(overlay).values():
        assert pod["hostNetwork"]
        assert not {"hostPID", "hostIPC", "hostUsers", "shareProcessNamespace"} & pod.keys()
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}


def test_the_manager_is_not_root(overlay: str) -> None:
    context = pods(overlay)["contrail-manager"]["securityContext"]
    assert context["runAsNonRoot"]
    assert context["runAsUser"] > 0


def test_containers_mount_only_these_paths_of_the_host(overlay: str) -> None:
    for pod in pods(overlay).values():
        paths = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume}
        mounted = {
            container["name"]: {paths[mount["name"]] for mount in container["volumeMounts"] if mount["name"] in paths}
            for container in containers(pod)
        }
        assert mounted == {name: set(code(RIGHTS[name][3])) for name in mounted}
        assert set(paths.values()) == set().union(*mounted.values())


def test_the_only_token_of_a_node_is_that_of_the_agent(overlay: str) -> None:
    pod = pods(overlay)["contrail-node"]
    assert not pod["automountServiceAccountToken"]
    tokens = {volume["name"] for volume in pod["volumes"] if "projected" in volume}
    holders = [one["name"] for one in containers(pod) if tokens & {mount["name"] for mount in one["volumeMounts"]}]
    assert holders == ([] if overlay == "vrouter" else ["agent"])
    assert len(tokens) == len(holders)


def test_drains_stop_one_manager_at_a_time(overlay: str) -> None:
    (budget,) = (item["spec"] for item in objects(overlay) if item["kind"] == "PodDisruptionBudget")
    (manager,) = (item["spec"] for item in objects(overlay) if item["kind"] == "Deployment")
    assert budget["maxUnavailable"] == 1
    assert budget["selector"] == manager["selector"]


def test_nothing_that_holds_data_is_part_of_it(overlay: str) -> None:
    """`kubectl delete -k` deletes what is part of it, and everything in the namespace."""
    for item in built(OVERLAYS / overlay):
        kind, namespace, name = key(item)
        assert kind != "CustomResourceDefinition"
        assert "opencontrail.org" not in item["apiVersion"].partition("/")[0]
        assert "cni.cncf.io" not in item["apiVersion"]
        assert (kind, name) == ("Namespace", "contrail") or kind != "Namespace"
        assert namespace in ("", "contrail") or key(item) in OF_MULTUS


def test_every_image_has_a_version(overlay: str) -> None:
    images = [one["image"] for item in built(OVERLAYS / overlay) for one in containers_of(item)]
    versions = {image.rpartition(":")[2] for image in images}
    assert [each for each in versions if not re.fullmatch(r"v?\d+\.\d+\.\d+(-thick)?", each)] == []


def containers_of(item: Object) -> list[Any]:
    return containers(item["spec"]["template"]["spec"]) if item["kind"] in ("Deployment", "DaemonSet") else []
