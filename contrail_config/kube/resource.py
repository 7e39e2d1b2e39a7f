"""What the client must know of a kind: where it is served, and the struct that its objects are decoded into.

The struct lists only what its user reads, which is what makes a watch of a hundred thousand pods cheap. Such a struct
must never be written back as a whole, for the server would drop the rest: patch, unless the struct is the whole object.
"""

import functools
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar
from urllib.parse import quote

import msgspec


class Metadata(msgspec.Struct, frozen=True, gc=False, kw_only=True, rename="camel", omit_defaults=True):
    """What is always read of an object's metadata; extended by whoever needs more."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class KubeObject(Protocol):
    """A msgspec struct with the metadata of its object."""

    @property
    def metadata(self) -> Metadata:
        """At least name, namespace, uid and resourceVersion."""


T = TypeVar("T", bound=KubeObject)


@dataclass(frozen=True)
class Resource(Generic[T]):
    """A kind as the server serves it; `group` is empty for the core API. Decoded into `type`."""

    group: str
    version: str
    kind: str
    plural: str
    type: type[T]
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """`group/version`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @functools.cached_property
    def prefix(self) -> bytes:
        """What the JSON of an object begins with; its metadata follows at least."""
        return msgspec.json.encode({"apiVersion": self.api_version, "kind": self.kind}).removesuffix(b"}") + b","

    @functools.cached_property
    def _root(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Returns the URL's path of a collection (of all namespaces if none is given), or of one object.

        Raises ValueError if the namespace is missing or out of place, as that would be another object's path.
        """
        if bool(namespace) != self.namespaced and (namespace or name):
            raise ValueError(f"{self.plural} {name!r}: namespace {namespace!r} does not fit")
        place = ("namespaces", namespace) if namespace else ()
        parts = (*place, self.plural, name, subresource)
        return self._root + "".join(f"/{quote(part, safe=':')}" for part in parts if part)
