"""Annotations of the server's objects: a map of strings by key."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

CLUSTER: Final = "cluster"
"""Cluster of the object: several may share a server."""

NETWORK: Final = "network"
"""Our whole VirtualNetwork as JSON."""

HIDDEN: Final = "deleted"
"""The network is deleted for our readers, while addresses of it are held."""

MANAGER: Final = "manager"
"""The program that made the object: only what this one left unfinished is deleted."""

OURS: Final = "contrail-multinet"

MACHINE: Final = "machine"
"""Our whole VirtualMachine as JSON, written last: without it, the virtual machine does not exist for our readers."""

DELETING: Final = "deleting"
"""The virtual machine is being deleted: seconds since the epoch until which its addresses are held."""

OWNER: Final = "owner-uuid"
"""Uuid of the interface to which an instance-ip was allocated, linked or not. `owner` is a key of upstream's."""

HELD_UNTIL: Final = "held-until"
"""The instance-ip was released: seconds since the epoch until which its address is held."""

FAMILIES: Final = "families"
"""Families of an interface's addresses, `4`, `6` or `4,6`: what a reader of single objects has to wait for."""


def to_map(pairs: Mapping[str, str]) -> dict[str, Any]:
    """Returns annotations as in a body."""
    return {"key_value_pair": [{"key": key, "value": value} for key, value in pairs.items()]}


def from_object(item: Mapping[str, Any]) -> dict[str, str]:
    """Returns the annotations of an object; whoever wrote them, values that are no strings are left out."""
    pairs = (item.get("annotations") or {}).get("key_value_pair") or []
    return {pair["key"]: pair["value"] for pair in pairs if isinstance(pair.get("value"), str) and "key" in pair}


def json_in(item: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Returns the JSON object in an annotation; empty if there is none."""
    try:
        found = msgspec.json.decode(from_object(item).get(key, "{}"))
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}
