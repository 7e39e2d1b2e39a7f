"""What sources of pods and networks tell the manager: the same typed events from Kubernetes and from a folder.

A source lists first: namespaces and NADs, then pods, then `Listed`; after it come changes. A source that had to list
again sends the whole once more and another `Listed`; what disappeared meanwhile it sends as gone. Networks come before
the pods that were there with them (rule 3).
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec


class Pod(msgspec.Struct, frozen=True):
    """What the manager reads of a pod. `uid` is always a UUID, `node` always set: unbound pods are not sent.

    `gone`: the pod ended and its sandbox was removed, so it holds no resources any more.
    `config_hash`: the annotation `kubernetes.io/config.hash` of a static pod.
    """

    namespace: str
    name: str
    uid: str
    node: str
    annotations: Mapping[str, str]
    host_network: bool = False
    gone: bool = False
    config_hash: str | None = None


class Nad(msgspec.Struct, frozen=True):
    """A NetworkAttachmentDefinition; `config` is `spec.config` as it stands, None if there is none."""

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
    """A namespace; pods may live in one that was never sent (a folder needs no object)."""

    name: str
    annotations: Mapping[str, str]


class Applied(msgspec.Struct, frozen=True):
    """The object appeared or changed, or was seen again by a new list."""

    object: Pod | Nad | Namespace


class Gone(msgspec.Struct, frozen=True):
    """The object is no more: its last state."""

    object: Pod | Nad | Namespace


class Problem(msgspec.Struct, frozen=True):
    """The source could not use what it read: recorded as a warning event on that object.

    `kind` is `Manifest` (then `name` is the file's path below the folder), `Pod` or `NetworkAttachmentDefinition`.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    reason: str
    message: str


class Listed(msgspec.Struct, frozen=True):
    """Everything that is there has been sent: what the store holds beyond it can be freed.

    Not so if it is not `complete`: then something could not be read (a broken manifest), and what it defines is not
    known. Nothing may be freed on the strength of such a list; another one follows once all could be read.
    """

    complete: bool = True


SourceEvent = Applied | Gone | Problem | Listed


class Source(Protocol):
    """Where pods and networks come from."""

    def events(self) -> AbstractAsyncContextManager[AsyncIterator[SourceEvent]]:
        """All events, in order, until the context is left."""


class IdentityLog(Protocol):
    """Remembers which uid a source gave to an object whose manifest states none, over restarts."""

    async def identities(self) -> dict[tuple[str, str, str], str]:
        """(kind, namespace, name) to uid."""

    async def remember_identity(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """Keeps the uid until it is forgotten."""

    async def forget_identity(self, kind: str, namespace: str, name: str) -> None:
        """Forgets it; one that is not there is no error."""
