"""Manifests applied to a real API server, as with `kubectl apply -f`."""

from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import yaml

from tests.support.real_apiserver.server import ApiServer

MANIFESTS = Path(__file__).parents[2] / "deploy" / "kubernetes"


def documents(path: Path) -> list[dict[str, Any]]:
    """The objects of a file, or of all files of a folder in alphabetical order."""
    files = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    return [document for file in files for document in yaml.safe_load_all(file.read_text())]


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
