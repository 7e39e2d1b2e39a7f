"""What a pod can lack, as a key by which it is found when that appears."""

from enum import StrEnum
from typing import NamedTuple

from contrail_config.objects import FqName


class DependencyKind(StrEnum):
    """What appears or comes free."""

    NAD = "nad"
    NETWORK = "network"
    NAMESPACE = "namespace"
    ADDRESS = "address"
    MAC = "mac"
    UID = "uid"


class Dependency(NamedTuple):
    """One thing that a pod waits for; make it by the functions below, so that both sides mean the same."""

    kind: DependencyKind
    name: str


def nad_dependency(key: str) -> Dependency:
    """A usable NAD, by `namespace/name`."""
    return Dependency(DependencyKind.NAD, key)


def network_dependency(fq_name: FqName) -> Dependency:
    """A network of that name."""
    return Dependency(DependencyKind.NETWORK, ":".join(fq_name))


def namespace_dependency(name: str) -> Dependency:
    """Another annotation of the namespace."""
    return Dependency(DependencyKind.NAMESPACE, name)


def address_dependency(network_uuid: str) -> Dependency:
    """The release of an address in the network."""
    return Dependency(DependencyKind.ADDRESS, network_uuid)


def mac_dependency(network_uuid: str, mac: str) -> Dependency:
    """The MAC in the network."""
    return Dependency(DependencyKind.MAC, f"{network_uuid} {mac}")


def uid_dependency(uid: str) -> Dependency:
    """The uid, which another pod bears."""
    return Dependency(DependencyKind.UID, uid)
