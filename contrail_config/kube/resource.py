"""Resources: where a kind is served, and the struct that its objects are decoded into.

The struct has only the fields that its user reads, which is what makes a watch of a hundred thousand pods cheap. Unless
it covers the whole object it must never be written back as a whole, since the server would drop all other fields:
patch.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar
from urllib.parse import quote

import msgspec


class Metadata(msgspec.Struct, frozen=True, gc=False, kw_only=True, rename="camel", omit_defaults=True):
    """Metadata that is read of every object; subclasses add fields."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class KubeObject(Protocol):
    """A msgspec struct with object metadata."""

    @property
    def metadata(self) -> Metadata:
        """At least name, namespace, uid and resourceVersion."""


T = TypeVar("T", bound=KubeObject)


@dataclass(frozen=True)
class Resource(Generic[T]):
    """A kind as the server serves it, decoded into `type`; `group` is empty for the core API.

    `check` returns why an object that matches its struct cannot be used, None if it can: lists and watches then return
    it as undecodable.
    """

    group: str
    version: str
    kind: str
    plural: str
    type: type[T]
    namespaced: bool = True
    check: Callable[[T], str | None] | None = None

    @property
    def api_version(self) -> str:
        """`group/version`, only `version` for the core API."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @functools.cached_property
    def prefix(self) -> bytes:
        """The start of an object's JSON, apiVersion and kind; at least its metadata follows."""
        return msgspec.json.encode({"apiVersion": self.api_version, "kind": self.kind}).removesuffix(b"}") + b","

    @functools.cached_property
    def _root(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Returns the URL path of an object, or of a collection (in all namespaces if none is given).

        Raises ValueError if a namespace is missing or not allowed: the path would be that of another object.
        """
        if bool(namespace) != self.namespaced and (namespace or name):
            raise ValueError(f"{self.plural} {name!r}: namespace {namespace!r} does not fit")
        prefix = ("namespaces", namespace) if namespace else ()
        parts = (*prefix, self.plural, name, subresource)
        return self._root + "".join(f"/{quote(part, safe=':')}" for part in parts if part)
