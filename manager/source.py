"""Events of a source of pods and networks: the same types from Kubernetes and from a folder of manifests.

A source first lists namespaces and NADs, then pods, then sends `Listed`; changes follow. A source that has to list
again sends everything again and another `Listed`; objects that disappeared in the gap are sent as gone. Networks are
sent before the pods that existed with them (rule 3).
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec


class Pod(msgspec.Struct, frozen=True, gc=False):
    """A pod as the manager reads it. `uid` is always a UUID; `node` is always set: unbound pods are not sent.

    `excluded`: its node has no agent of ours, so it gets no interfaces unless it has them already.
    `gone`: the pod ended and its sandbox was removed, so it holds no resources any more. `rejected`: its node rejected
    it, so it needs no interfaces; a sandbox of it may exist for a while.
    `config_hash`: the annotation `kubernetes.io/config.hash` of a static pod.
    """

    namespace: str
    name: str
    uid: str
    node: str
    annotations: Mapping[str, str]
    host_network: bool = False
    gone: bool = False
    excluded: bool = False
    rejected: bool = False
    config_hash: str | None = None

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


class Nad(msgspec.Struct, frozen=True):
    """A NetworkAttachmentDefinition; `config` is `spec.config` unparsed, None if there is none."""

    namespace: str
    name: str
    uid: str
    annotations: Mapping[str, str]
    config: str | None

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


class Namespace(msgspec.Struct, frozen=True):
    """A namespace; a pod's namespace may never be sent (a folder of manifests needs no namespace object)."""

    name: str
    annotations: Mapping[str, str]


class Applied(msgspec.Struct, frozen=True):
    """The object was created or changed, or is part of a new list."""

    object: Pod | Nad | Namespace


class Gone(msgspec.Struct, frozen=True):
    """The object was deleted; `object` is its last state."""

    object: Pod | Nad | Namespace


class Problem(msgspec.Struct, frozen=True):
    """The source could not decode an object: recorded as a warning event on that object.

    `kind` is `Manifest` (then `name` is the file's path below the folder), `Pod` or `NetworkAttachmentDefinition`.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    reason: str
    message: str


class Listed(msgspec.Struct, frozen=True):
    """All existing objects have been sent: whatever else the store holds can be released.

    Not if `complete` is false: something could not be read (a broken manifest), so the objects in it are unknown.
    Nothing may be released because of such a list; another one follows once everything could be read.
    """

    complete: bool = True


SourceEvent = Applied | Gone | Problem | Listed


class Source(Protocol):
    """Where pods and networks come from."""

    def events(self) -> AbstractAsyncContextManager[AsyncIterator[SourceEvent]]:
        """Yields all events, in order, until the context is left."""


class IdentityLog(Protocol):
    """Keeps, over restarts, the uid that a source generated for an object whose manifest states none."""

    async def identities(self) -> dict[tuple[str, str, str], str]:
        """Returns uids by (kind, namespace, name)."""

    async def remember_identity(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """Keeps the uid until it is forgotten."""

    async def forget_identity(self, kind: str, namespace: str, name: str) -> None:
        """Forgets the uid. Idempotent."""
