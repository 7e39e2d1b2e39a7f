"""Manifests applied to a real API server, as with `kubectl apply`."""

from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import yaml

from tests.support.real_apiserver.server import ApiServer

MANIFESTS = Path(__file__).parents[2] / "deploy" / "base"


def documents(path: Path) -> list[dict[str, Any]]:
    """The objects of a file, of the resources of a kustomization in their order, or of all files of another folder."""
    return [document for file in _files(path) for document in yaml.safe_load_all(file.read_text())]


def _files(path: Path) -> list[Path]:
    kustomization = path / "kustomization.yaml"
    if kustomization.exists():
        return [path / name for name in yaml.safe_load(kustomization.read_text())["resources"]]
    return sorted(path.glob("*.yaml")) if path.is_dir() else [path]


def apply(server: ApiServer, *objects: dict[str, Any]) -> None:
    """Creates the objects in order and skips existing ones. Raises ValueError if the server rejects one."""
    for item in objects:
        try:
            server.ask("POST", f"{collection(server, item)}?fieldValidation=Strict", item)
        except HTTPError as error:
            if error.code != 409:
                raise ValueError(f"{item['kind']} {item['metadata']['name']}: {error.read().decode()}") from error


def collection(server: ApiServer, item: dict[str, Any]) -> str:
    """Path of the collection that the object belongs to."""
    version = item["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    served = server.ask("GET", root)["resources"]
    kind = next(each for each in served if each["kind"] == item["kind"] and "/" not in each["name"])
    folder = f"/namespaces/{item['metadata']['namespace']}" if kind["namespaced"] else ""
    return f"{root}{folder}/{kind['name']}"


def holds(stored: Any, written: Any) -> bool:
    """Whether everything written is stored; the server adds defaults."""
    if isinstance(written, dict):
        return isinstance(stored, dict) and all(key in stored and holds(stored[key], written[key]) for key in written)
    if isinstance(written, list):
        return len(stored) == len(written) and all(map(holds, stored, written))
    return bool(stored == written)
