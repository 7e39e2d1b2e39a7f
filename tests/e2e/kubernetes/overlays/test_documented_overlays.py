"""What the pages say about overlays: what the kustomization of an operator changes, and a switch to Multus."""

from pathlib import Path

from manager.configuration import load_manager_configuration
from tests.support.kubectl.client import OVERLAYS, Object, built, key

IMAGE = "REGISTRY/contrail-multinet:0.1.0"


def test_the_kustomization_of_an_operator_changes_what_it_says(checkout: Path, cluster_folder: str) -> None:
    overlay = {key(item): item for item in built(OVERLAYS / "standalone")}
    own = {key(item): item for item in built(checkout / cluster_folder)}
    assert own.keys() == overlay.keys()
    assert {each for each in own if own[each] != overlay[each]} == {
        ("ConfigMap", "contrail", "contrail-manager"),
        ("Deployment", "contrail", "contrail-manager"),
        ("DaemonSet", "contrail", "contrail-node"),
    }
    assert images(list(own.values())) == {IMAGE}


def test_nodes_are_uninstalled_with_the_image_of_the_installation(checkout: Path, uninstall_folder: str) -> None:
    assert images(built(checkout / uninstall_folder)) == {IMAGE}


def test_the_manager_takes_its_configuration(checkout: Path, cluster_folder: str, tmp_path: Path) -> None:
    objects = {key(item): item for item in built(checkout / cluster_folder)}
    file = tmp_path / "manager.yaml"
    file.write_text(objects["ConfigMap", "contrail", "contrail-manager"]["data"]["manager.yaml"])
    assert load_manager_configuration(str(file)).network_slices


def test_a_switch_to_multus_changes_configurations_only() -> None:
    """So `kubectl apply -k` restarts no pod."""
    standalone, multus = ({key(item): item for item in built(OVERLAYS / name)} for name in ("standalone", "multus"))
    assert {each for each in standalone.keys() | multus.keys() if standalone.get(each) != multus.get(each)} == {
        ("ConfigMap", "contrail", "contrail-manager"),
        ("ConfigMap", "contrail", "contrail-node"),
    }


def images(objects: list[Object]) -> set[str]:
    pods = [item["spec"]["template"]["spec"] for item in objects if "template" in item.get("spec", {})]
    return {one["image"] for pod in pods for one in [*pod.get("initContainers", []), *pod["containers"]]}
