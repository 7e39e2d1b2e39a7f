"""Config maps for tests of the Kubernetes client: no controller of a cluster acts on them."""

from typing import Any

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kube.resource import Metadata, Resource


class LabelledMetadata(Metadata, frozen=True):
    """Metadata with labels."""

    labels: dict[str, str] = msgspec.field(default_factory=dict)


class ConfigMap(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields of a config map that tests read."""

    metadata: LabelledMetadata
    data: dict[str, str] = {}


CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps", ConfigMap)
NAMESPACE = "default"


class ConfigMaps:
    """Reads and writes the config maps of one namespace by name."""

    def __init__(self, client: KubeClient, namespace: str = NAMESPACE) -> None:
        self.client = client
        self.namespace = namespace

    async def create(self, name: str, *, labels: dict[str, str] | None = None, **data: str) -> ConfigMap:
        body = {"metadata": {"name": name, "labels": labels or {}}, "data": data}
        return await self.client.create(CONFIG_MAPS, body, namespace=self.namespace)

    async def get(self, name: str) -> ConfigMap:
        return await self.client.get(CONFIG_MAPS, name, namespace=self.namespace)

    async def change(self, name: str, **data: str | None) -> ConfigMap:
        return await self.patch(name, {"data": data})

    async def patch(self, name: str, patch: dict[str, Any]) -> ConfigMap:
        return await self.client.patch(CONFIG_MAPS, name, patch, namespace=self.namespace)

    async def delete(self, name: str, *, uid: str = "", resource_version: str = "") -> None:
        await self.client.delete(
            CONFIG_MAPS, name, namespace=self.namespace, uid=uid, resource_version=resource_version
        )
