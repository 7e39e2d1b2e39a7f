"""Dependencies: the objects and resources that a pod can wait for, as keys of the pending index."""

from enum import StrEnum
from typing import NamedTuple

from contrail_config.objects import FqName


class DependencyKind(StrEnum):
    """Kind of object that appears, or of resource that is released."""

    NAD = "nad"
    NETWORK = "network"
    NAMESPACE = "namespace"
    ADDRESS = "address"
    MAC = "mac"
    UID = "uid"


class Dependency(NamedTuple):
    """One dependency of a pod; create it with the functions below, so that both sides use the same key."""

    kind: DependencyKind
    name: str


def nad_dependency(key: str) -> Dependency:
    """A usable NAD; `key` is `namespace/name`."""
    return Dependency(DependencyKind.NAD, key)


def network_dependency(fq_name: FqName) -> Dependency:
    """A virtual network of this name."""
    return Dependency(DependencyKind.NETWORK, ":".join(fq_name))


def namespace_dependency(name: str) -> Dependency:
    """A change of the namespace's annotation."""
    return Dependency(DependencyKind.NAMESPACE, name)


def address_dependency(network_uuid: str) -> Dependency:
    """The release of an address in the network."""
    return Dependency(DependencyKind.ADDRESS, network_uuid)


def mac_dependency(network_uuid: str, mac: str) -> Dependency:
    """The release of the MAC address in the network."""
    return Dependency(DependencyKind.MAC, f"{network_uuid} {mac}")


def uid_dependency(uid: str) -> Dependency:
    """The release of a uid that another pod has."""
    return Dependency(DependencyKind.UID, uid)
