"""The manifests in `deploy/examples` are understood whole, and show between them what their table promises."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from manager.manifests.decoding import decode_document
from manager.parsing.nad import parse_nad
from manager.parsing.network_definition import NetworkDefinition
from manager.parsing.network_selection import NetworkSelection
from manager.parsing.networks import parse_networks
from manager.source import Nad, Pod, Problem

EXAMPLES = Path(__file__).parents[2] / "deploy" / "examples"
FILES = sorted(EXAMPLES.glob("*.yaml"))
NETWORKS_KEY = "k8s.v1.cni.cncf.io/networks"


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


def objects(kind: type[Any]) -> list[Any]:
    found = [
        item
        for path in FILES
        for position, document in enumerate(documents(path))
        for item in decode_document(document, path=path.name, position=position, node="worker-1")
    ]
    assert not [item for item in found if isinstance(item, Problem)]
    return [item.object for item in found if not isinstance(item, Problem) and isinstance(item.object, kind)]


PODS: dict[str, Pod] = {f"{pod.namespace}/{pod.name}": pod for pod in objects(Pod)}
NADS: dict[str, Nad] = {nad.key: nad for nad in objects(Nad)}


def selections(pod: Pod) -> tuple[NetworkSelection, ...]:
    return parse_networks(pod.annotations.get(NETWORKS_KEY, ""), namespace=pod.namespace)


def definition(nad: Nad) -> NetworkDefinition:
    defined = parse_nad(nad, default_mtu=1500)
    assert isinstance(defined, NetworkDefinition)
    return defined


SELECTIONS = {key: selections(pod) for key, pod in PODS.items()}


def families(key: str) -> set[int]:
    return {6 if ":" in subnet.cidr else 4 for subnet in definition(NADS[key]).subnets}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_file_says_what_it_shows(path: Path) -> None:
    assert path.read_text().startswith("# ")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_kubectl_takes_it_unchanged(path: Path) -> None:
    for document in documents(path):
        assert {"apiVersion", "kind", "metadata"} <= document.keys()
        annotations = document["metadata"].get("annotations", {})
        assert all(isinstance(value, str) for value in annotations.values())
        if document["kind"] == "Pod":
            assert document["metadata"]["namespace"]
            assert all(container.keys() == {"name", "image"} for container in document["spec"]["containers"])


def test_there_are_pods_enough_of_several_namespaces() -> None:
    assert len(PODS) >= 6
    assert len(NADS) >= 3
    assert len({pod.namespace for pod in PODS.values()}) >= 2


def test_every_network_that_a_pod_names_is_there() -> None:
    assert {selection.key for chosen in SELECTIONS.values() for selection in chosen} == NADS.keys()


def test_one_network_is_dual_stack_and_one_has_ipv6_alone() -> None:
    assert [families(key) for key in sorted(NADS)] == [{4}, {4, 6}, {6}]


def test_one_pod_names_no_network() -> None:
    assert [key for key, chosen in SELECTIONS.items() if not chosen] == ["shop/plain"]


def test_one_pod_is_twice_in_one_network() -> None:
    assert max(Counter(selection.key for selection in SELECTIONS["shop/twice"]).values()) == 2


def test_names_addresses_and_macs_are_asked_for() -> None:
    chosen = [selection for each in SELECTIONS.values() for selection in each]
    assert any(selection.interface for selection in chosen)
    assert any(selection.mac for selection in chosen)
    assert any(len(selection.ips) == 2 for selection in chosen)


def test_addresses_that_are_asked_for_can_be_given() -> None:
    front = SELECTIONS["shop/fixed"][0]
    blue = definition(NADS["shop/blue"])
    assert front.ips == ("10.10.0.100", "fd00:10::100")
    assert [subnet.cidr for subnet in blue.subnets] == ["10.10.0.0/24", "fd00:10::/64"]
    assert blue.subnets[0].excluded == ("10.10.0.128/25",)


def test_default_routes_go_through_another_interface_by_either_annotation() -> None:
    assert PODS["shop/gateway"].annotations["opencontrail.org/default-gw"] == "eth1"
    assert SELECTIONS["media/router"][0].default_route == ("10.30.0.1",)


def test_networks_of_another_namespace_are_named_in_both_forms() -> None:
    for key in ("shop/named", "media/router"):
        assert any(selection.namespace != PODS[key].namespace for selection in SELECTIONS[key])
    assert PODS["shop/named"].annotations[NETWORKS_KEY][0] != "["
    assert PODS["media/router"].annotations[NETWORKS_KEY].strip()[0] == "["


def test_a_network_carries_mtu_dns_and_routes() -> None:
    storage = definition(NADS["media/storage"])
    assert (storage.mtu, storage.dns) == (9000, ("10.30.0.2",))
    assert [(route.dst, route.gw) for route in storage.routes] == [("10.31.0.0/16", "10.30.0.1")]


def test_the_table_names_every_file_and_pod() -> None:
    table = (EXAMPLES / "README.md").read_text()
    assert set(re.findall(r"`((?:shop|media)/[a-z0-9-]+)`", table)) == PODS.keys() | NADS.keys()
    assert set(re.findall(r"\]\((\S+\.yaml)\)", table)) == {path.name for path in FILES} - {"00-namespaces.yaml"}
