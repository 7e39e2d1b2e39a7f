"""Served kinds: built-in ones and those of CustomResourceDefinitions."""

from typing import Any, NamedTuple


class Kind(NamedTuple):
    """A kind in one version; all versions of a `group` and `plural` share their objects."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    has_status: bool = False
    custom: bool = False
    blind_updates: bool = True  # an update needs no resourceVersion

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def collection(self) -> tuple[str, str]:
        return self.group, self.plural

    @property
    def qualified(self) -> str:
        """Its name in the server's messages."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


NAMESPACES = Kind("", "v1", "Namespace", "namespaces", namespaced=False, has_status=True)
PODS = Kind("", "v1", "Pod", "pods", has_status=True)
CONFIG_MAPS = Kind("", "v1", "ConfigMap", "configmaps")
LEASES = Kind("coordination.k8s.io", "v1", "Lease", "leases", blind_updates=False)
CRDS = Kind(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
    has_status=True,
)

BUILT_IN = (
    NAMESPACES,
    PODS,
    CRDS,
    CONFIG_MAPS,
    Kind("", "v1", "Event", "events"),
    Kind("", "v1", "Node", "nodes", namespaced=False, has_status=True),
    LEASES,
)


def kinds_of(crd: dict[str, Any]) -> list[Kind]:
    """The kinds that a definition adds, one per served version."""
    spec = crd["spec"]
    return [
        Kind(
            spec["group"],
            version["name"],
            spec["names"]["kind"],
            spec["names"]["plural"],
            namespaced=spec["scope"] == "Namespaced",
            has_status="status" in version.get("subresources", {}),
            custom=True,
            blind_updates=False,
        )
        for version in spec["versions"]
        if version["served"]
    ]
