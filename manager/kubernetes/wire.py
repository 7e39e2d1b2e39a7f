"""Structs that the API server's objects are decoded into.

Annotations are structs of the few relevant keys, since all others may be megabytes, for each of a hundred thousand
cached pods. A text of which only its presence or a few values matter becomes an enum member: no memory per object.
"""

from enum import Enum
from typing import Any

import msgspec

from contrail_config.kube.resource import Metadata, Resource
from manager.decoding import CONFIG_HASH_KEY, PodSpec, PodStatus
from manager.mapping.annotations import DEFAULT_GATEWAY_KEY, DEFAULT_NETWORK_KEY
from manager.parsing.nad import FORWARDING_KEY, FORWARDING_MODE_KEY, SNAT_KEY
from manager.parsing.nad_network import CIDR_KEY, EXCLUDE_KEY, GATEWAY_KEY
from manager.parsing.namespace_settings import ISOLATION_KEY
from manager.parsing.network_reference import NETWORK_KEY
from manager.parsing.networks import NETWORKS_KEY

STATUS_KEY = "k8s.v1.cni.cncf.io/network-status"
MIRROR_KEY = "kubernetes.io/config.mirror"


class _Wire(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Immutable, so never part of a cycle."""


class Presence(Enum):
    """A text that is present; its value does not matter."""

    PRESENT = ""

    @classmethod
    def _missing_(cls, _value: object) -> "Presence":
        return cls.PRESENT


class PodAnnotations(_Wire, frozen=True):
    """Annotations that select networks or identify static pods, and whether the pod's network status was written.

    `mirror`: by this kubelet recognizes a mirror pod; its value is the hash of the static pod's manifest.
    """

    networks: str | None = msgspec.field(name=NETWORKS_KEY, default=None)
    default_network: str | None = msgspec.field(name=DEFAULT_NETWORK_KEY, default=None)
    network: str | None = msgspec.field(name=NETWORK_KEY, default=None)
    default_gw: str | None = msgspec.field(name=DEFAULT_GATEWAY_KEY, default=None)
    config_hash: str | None = msgspec.field(name=CONFIG_HASH_KEY, default=None)
    mirror: str | None = msgspec.field(name=MIRROR_KEY, default=None)
    status: Presence | None = msgspec.field(name=STATUS_KEY, default=None)


class PodMetadata(Metadata, frozen=True):
    """A pod's metadata."""

    annotations: PodAnnotations | None = None


class PodObject(_Wire, frozen=True):
    """A pod, core/v1."""

    metadata: PodMetadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class NadAnnotations(_Wire, frozen=True):
    """Annotations that describe the network of a NAD."""

    cidr: str | None = msgspec.field(name=CIDR_KEY, default=None)
    gateway: str | None = msgspec.field(name=GATEWAY_KEY, default=None)
    exclude: str | None = msgspec.field(name=EXCLUDE_KEY, default=None)
    network: str | None = msgspec.field(name=NETWORK_KEY, default=None)
    snat: str | None = msgspec.field(name=SNAT_KEY, default=None)
    forwarding: str | None = msgspec.field(name=FORWARDING_KEY, default=None)
    forwarding_mode: str | None = msgspec.field(name=FORWARDING_MODE_KEY, default=None)


class NadMetadata(Metadata, frozen=True):
    """A NAD's metadata."""

    annotations: NadAnnotations | None = None


class NadObject(_Wire, frozen=True):
    """A NetworkAttachmentDefinition. `spec` may be anything: its schema depends on who created the CRD."""

    metadata: NadMetadata
    spec: Any = None


class NamespaceAnnotations(_Wire, frozen=True):
    """The network of the namespace's pods, and whether it is one of their own."""

    network: str | None = msgspec.field(name=NETWORK_KEY, default=None)
    isolation: str | None = msgspec.field(name=ISOLATION_KEY, default=None)
    snat: str | None = msgspec.field(name=SNAT_KEY, default=None)
    forwarding: str | None = msgspec.field(name=FORWARDING_KEY, default=None)


class NamespaceMetadata(Metadata, frozen=True):
    """A namespace's metadata."""

    annotations: NamespaceAnnotations | None = None


class NamespaceObject(_Wire, frozen=True):
    """A namespace, core/v1."""

    metadata: NamespaceMetadata


class NodeObject(_Wire, frozen=True):
    """A node, core/v1; the server compares its labels."""

    metadata: Metadata


PODS = Resource("", "v1", "Pod", "pods", PodObject)
NADS = Resource("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions", NadObject)
NODES = Resource("", "v1", "Node", "nodes", NodeObject, namespaced=False)
NAMESPACES = Resource("", "v1", "Namespace", "namespaces", NamespaceObject, namespaced=False)
