"""The record of one attachment: all that DEL, CHECK and the next ADD of the container need to know of it.

Begun before the agent is asked; whole before the first link is made, so that whatever a killed ADD leaves can be found;
`finished` last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.plan import Address, DefaultRoute, InterfacePlan, ReplacedRoute, Route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_VERSION = 1


class AttachedInterface(NamedTuple):
    """An interface of the attachment: its uuid and position at the agent, and what it was planned to be."""

    uuid: str
    position: int
    plan: InterfacePlan


class Record(NamedTuple):
    """One attachment. `machine` is the VM's uuid, `machine_name` its name; `netns` is CNI_NETNS as it was given.

    `attempt` is of the ADD that wrote it. Without interfaces, nothing has been made or told yet. `stock`: the agent is
    a stock one, which forgets all ports of a VM at once and wants files for them. `replaced` are the default routes
    that stood before asked-for ones took their place.
    """

    container_id: str
    ifname: str
    attempt: str
    netns: str
    thick: bool
    stock: bool = False
    machine: str = ""
    machine_name: str = ""
    interfaces: tuple[AttachedInterface, ...] = ()
    replaced: tuple[ReplacedRoute, ...] = ()
    finished: bool = False

    def holds_primary(self) -> bool:
        """Whether index 0 of the pod is attached by it."""
        return any(each.position == 0 for each in self.interfaces)


def encode_record(record: Record) -> bytes:
    """Forms the file's content."""
    return json.dumps({"version": _VERSION, **_document(record)}, indent=1).encode()


def decode_record(data: bytes) -> Record:
    """Reads the file's content; raises `ValueError` if it is no record of this version."""
    try:
        return _record(json.loads(data))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"no record of version {_VERSION}: {error}") from error


def _document(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {key: _document(each) for key, each in value._asdict().items()}
    if isinstance(value, tuple):
        return [_document(each) for each in value]
    return value


def _record(document: dict[str, Any]) -> Record:
    if document.pop("version") != _VERSION:
        raise ValueError("the version differs")
    interfaces = tuple(_interface(each) for each in document.pop("interfaces"))
    replaced = tuple(ReplacedRoute(**each) for each in document.pop("replaced"))
    return Record(**document, interfaces=interfaces, replaced=replaced)


def _interface(document: Mapping[str, Any]) -> AttachedInterface:
    plan = dict(document["plan"])
    for key, kind in (("addresses", Address), ("routes", Route), ("defaults", DefaultRoute)):
        plan[key] = tuple(kind(**each) for each in plan[key])
    return AttachedInterface(document["uuid"], document["position"], InterfacePlan(**plan))
