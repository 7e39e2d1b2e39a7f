"""Wire types of the Kubernetes objects in manifests: only the keys that the manager uses.

They are typed, so a value of the wrong type is reported with the path of its key. As in Kubernetes, a key without a
value counts as absent.
"""

from typing import Any

import msgspec

from manager.decoding import PodSpec, PodStatus


class _Wire(msgspec.Struct, frozen=True, rename="camel"):
    pass


class NamedMetadata(_Wire, frozen=True):
    """The part of the metadata that identifies an object."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None


class NamedObject(_Wire, frozen=True):
    """Any object, reduced to its identity."""

    metadata: NamedMetadata = NamedMetadata()


class ManifestMetadata(_Wire, frozen=True):
    """The rest of the metadata; annotation values may have any type here and are checked one by one."""

    uid: str | None = None
    annotations: dict[str, Any] | None = None


class PodObject(_Wire, frozen=True):
    """A pod, core/v1."""

    metadata: ManifestMetadata
    spec: PodSpec | None = None
    status: PodStatus | None = None


class NadSpec(_Wire, frozen=True):
    """The network configuration, as JSON text."""

    config: str | None = None


class NadObject(_Wire, frozen=True):
    """A NetworkAttachmentDefinition."""

    metadata: ManifestMetadata
    spec: NadSpec | None = None


class NamespaceObject(_Wire, frozen=True):
    """A namespace, core/v1."""

    metadata: ManifestMetadata
