"""`scripts/helm-chart`: without values the chart is the overlay `standalone`; each value changes what it names."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.kubernetes.deployed.cluster import wait_until
from tests.e2e.kubernetes.overlays.remaining_data import all_data, everything_else
from tests.e2e.kubernetes.overlays.test_documented_overlays import images
from tests.support.applied_manifests import collection, holds
from tests.support.kubectl.client import OVERLAYS, ROOT, Kubectl, Object, built, key, templated
from tests.support.real_apiserver.server import ApiServer

Objects = dict[tuple[str, str, str], Object]
MANAGER = "ConfigMap", "contrail", "contrail-manager"
NODE = "ConfigMap", "contrail", "contrail-node"


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("helm") / "contrail-multinet"
    subprocess.run([str(ROOT / "scripts" / "helm-chart"), str(folder)], check=True, timeout=30)
    return folder


@pytest.fixture(scope="module")
def overlay() -> Objects:
    return {key(item): item for item in built(OVERLAYS / "standalone")}


def objects(chart: Path, **values: Any) -> Objects:
    options = [f"--set-json={name.replace('__', '.')}={json.dumps(value)}" for name, value in values.items()]
    return {key(item): item for item in templated(chart, *options)}


def changed(before: Objects, after: Objects) -> set[tuple[str, str, str]]:
    return {each for each in before.keys() | after.keys() if before.get(each) != after.get(each)}


def configuration(found: Objects, config_map: tuple[str, str, str], name: str) -> Any:
    return yaml.safe_load(found[config_map]["data"][name])


def test_without_values_it_is_the_overlay(chart: Path, overlay: Objects) -> None:
    assert objects(chart) == overlay


def test_it_installs_what_the_overlay_has_and_leaves_the_data_when_it_is_removed(
    chart: Path, overlay: Objects, kubectl: Kubectl, api_server: ApiServer, data: set[str]
) -> None:
    before = everything_else(kubectl)
    kubectl.helm("install", "--namespace", "kube-system", "contrail-multinet", str(chart))
    for item in overlay.values():
        stored = api_server.ask("GET", f"{collection(api_server, item)}/{item['metadata']['name']}")
        assert holds(stored, item), key(item)
    kubectl.helm("uninstall", "--namespace", "kube-system", "contrail-multinet")
    wait_until(lambda: everything_else(kubectl) <= before, what="everything else is removed")
    assert all_data(kubectl) == data


def test_its_image(chart: Path, overlay: Objects) -> None:
    found = objects(chart, image="registry.example/contrail-multinet@sha256:0123")
    assert images(list(found.values())) == {"registry.example/contrail-multinet@sha256:0123"}
    assert {kind for kind, _, _ in changed(overlay, found)} == {"Deployment", "DaemonSet"}


def test_the_name_of_the_cluster_is_the_same_everywhere(chart: Path, overlay: Objects) -> None:
    found = objects(chart, clusterName="east")
    assert changed(overlay, found) == {MANAGER, NODE}
    names = {configuration(found, NODE, name)["cluster-name"] for name in ("agent.yaml", "cnid.yaml", "cni.json")}
    assert names | {configuration(found, MANAGER, "manager.yaml")["cluster-name"]} == {"east"}


def test_the_pod_network(chart: Path, overlay: Objects) -> None:
    found = objects(chart, podNetwork__subnets=["10.40.0.0/16", "fd00:40::/64"], podNetwork__mtu=8950)
    assert changed(overlay, found) == {MANAGER}
    network = configuration(found, MANAGER, "manager.yaml")["pod-network"]
    assert network == {"subnets": ["10.40.0.0/16", "fd00:40::/64"], "mtu": 8950}


def test_nodes_whose_pods_something_else_connects(chart: Path, overlay: Objects) -> None:
    found = objects(chart, datapath="none", networkSlices=False)
    assert changed(overlay, found) == {MANAGER, NODE}
    assert configuration(found, MANAGER, "manager.yaml")["network-slices"] is False
    assert configuration(found, NODE, "agent.yaml")["datapath"] == "none"


def test_the_number_of_managers(chart: Path, overlay: Objects) -> None:
    found = objects(chart, managers=1)
    manager = "Deployment", "contrail", "contrail-manager"
    assert changed(overlay, found) == {manager}
    assert found[manager]["spec"]["replicas"] == 1
