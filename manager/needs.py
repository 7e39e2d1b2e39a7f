"""What a pod can lack, as a key by which it is found when that appears."""

from enum import StrEnum
from typing import NamedTuple

from contrail_config.objects import FqName


class NeedKind(StrEnum):
    """What appears or comes free."""

    NAD = "nad"
    NETWORK = "network"
    NAMESPACE = "namespace"
    ADDRESS = "address"
    MAC = "mac"
    UID = "uid"


class Need(NamedTuple):
    """One thing that a pod waits for; make it by the functions below, so that both sides mean the same."""

    kind: NeedKind
    name: str


def nad_need(key: str) -> Need:
    """A usable NAD, by `namespace/name`."""
    return Need(NeedKind.NAD, key)


def network_need(fq_name: FqName) -> Need:
    """A network of that name."""
    return Need(NeedKind.NETWORK, ":".join(fq_name))


def namespace_need(name: str) -> Need:
    """Another annotation of the namespace."""
    return Need(NeedKind.NAMESPACE, name)


def address_need(network_uuid: str) -> Need:
    """The release of an address in the network."""
    return Need(NeedKind.ADDRESS, network_uuid)


def mac_need(network_uuid: str, mac: str) -> Need:
    """The MAC in the network."""
    return Need(NeedKind.MAC, f"{network_uuid} {mac}")


def uid_need(uid: str) -> Need:
    """The uid, which another pod bears."""
    return Need(NeedKind.UID, uid)
