"""What we read of Kubernetes' own objects: typed, so that a wrong type is found with the path of its key.

A key without a value is as good as absent, as in Kubernetes.
"""

from typing import Any

import msgspec

from manager.decoding import PodSpec, PodStatus


class _Wire(msgspec.Struct, frozen=True, rename="camel"):
    pass


class NamedMetadata(_Wire, frozen=True):
    """What tells one object from another."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None


class NamedObject(_Wire, frozen=True):
    """Any object, as far as it tells which one it is."""

    metadata: NamedMetadata = NamedMetadata()


class Metadata(_Wire, frozen=True):
    """What else is asked of an object's metadata; the values of annotations are judged one by one."""

    uid: str | None = None
    annotations: dict[str, Any] | None = None


class PodObject(_Wire, frozen=True):
    """A pod, core/v1."""

    metadata: Metadata
    spec: PodSpec | None = None
    status: PodStatus | None = None


class NadSpec(_Wire, frozen=True):
    """The network configuration, as JSON text."""

    config: str | None = None


class NadObject(_Wire, frozen=True):
    """A NetworkAttachmentDefinition."""

    metadata: Metadata
    spec: NadSpec | None = None


class NamespaceObject(_Wire, frozen=True):
    """A namespace, core/v1."""

    metadata: Metadata
