"""`deploy/base`, `deploy/components` and `deploy/overlays`: complete, and configurations differ where they must only.

`tests/e2e/kubernetes/overlays` has what kustomize makes of them, and what the API server makes of that.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cni_contrail.daemon.configuration import load_daemon_configuration
from manager.configuration import load_manager_configuration
from tests.support.applied_manifests import MANIFESTS, documents
from tests.support.documentation import code, rows

DEPLOY = MANIFESTS.parent
MULTUS = DEPLOY / "components" / "multus"
FOLDERS = sorted(file.parent for file in DEPLOY.rglob("kustomization.yaml"))
BASE = {(item["kind"], item["metadata"]["name"]): item for item in documents(MANIFESTS)}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(DEPLOY)))
def test_every_manifest_of_a_folder_is_in_its_kustomization(folder: Path) -> None:
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    patches = {patch["path"] for patch in kustomization.get("patches", [])}
    named = {name for name in kustomization.get("resources", []) if not name.startswith("..")} | patches
    files = {file.name for file in folder.glob("*.y*ml")} - {"kustomization.yaml"}
    optional = {"agent.yaml", "agent-patch.yaml", "take-over-patch.yaml"}
    assert files - named == (optional if folder.name == "vrouter" else set())


def test_the_page_on_installation_lists_all_overlays_and_all_files_of_the_base() -> None:
    overlays = {f"deploy/overlays/{folder.name}" for folder in FOLDERS if folder.parent.name == "overlays"}
    files = set(yaml.safe_load((MANIFESTS / "kustomization.yaml").read_text())["resources"])
    listed = {name for row in rows("install", "A cluster") for name in code(row[0])}
    assert {name for name in listed if name.startswith("deploy/") or name.endswith(".yaml")} == overlays | files


def test_the_manager_beside_multus_differs_in_its_meta_plugin_only() -> None:
    assert differences("contrail-manager", "manager.yaml", yaml.safe_load) == {"meta-plugin"}


@pytest.mark.parametrize(("name", "load"), [("cnid.yaml", yaml.safe_load), ("cni.json", json.loads)])
def test_a_node_with_multus_differs_in_its_mode_only(name: str, load: Any) -> None:
    assert differences("contrail-node", name, load) == {"mode"}


def test_the_list_of_a_node_with_multus_offers_no_versions() -> None:
    """Multus thin takes the highest, and passes results of that version to runtimes that do not know it."""
    assert differences("contrail-node", "10-contrail.conflist", json.loads) == {"cniVersions"}
    written = json.loads(patched("contrail-node")["10-contrail.conflist"])
    assert "cniVersions" not in written
    assert written == json.loads((DEPLOY / "multus" / "10-contrail.conflist").read_text())


def test_the_programs_take_the_configuration_beside_multus(tmp_path: Path) -> None:
    (tmp_path / "manager.yaml").write_text(patched("contrail-manager")["manager.yaml"])
    (tmp_path / "cnid.yaml").write_text(patched("contrail-node")["cnid.yaml"])
    example = yaml.safe_load((DEPLOY / "multus" / "manager.yaml").read_text())
    written = yaml.safe_load(patched("contrail-manager")["manager.yaml"])
    assert written["meta-plugin"] == example["meta-plugin"]
    assert load_manager_configuration(str(tmp_path / "manager.yaml")).meta_plugin.kind == "multus"
    assert load_daemon_configuration(str(tmp_path / "cnid.yaml")).settings["mode"] == "delegated"


def test_multus_thick_has_the_configuration_of_the_example() -> None:
    (configuration,) = documents(DEPLOY / "overlays" / "multus-thick" / "daemon-configuration.yaml")
    example = DEPLOY / "multus" / "thick" / "daemon-config.json"
    assert json.loads(configuration["data"]["daemon-config.json"]) == json.loads(example.read_text())


def differences(config_map: str, name: str, load: Any) -> set[str]:
    """Keys of a file whose values differ between base and component."""
    before, after = load(BASE["ConfigMap", config_map]["data"][name]), load(patched(config_map)[name])
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}


def patched(config_map: str) -> dict[str, str]:
    """The files of a ConfigMap that the component replaces."""
    changes = [item for file in MULTUS.glob("*-configuration.yaml") for item in documents(file)]
    (data,) = (item["data"] for item in changes if item["metadata"]["name"] == config_map)
    return dict(data)
