"""The record of one attachment: all that DEL, CHECK and the next ADD of the container need to know of it.

Begun before the agent is asked; whole before the first link is made, so that whatever a killed ADD leaves can be found;
`finished` last.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping

from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.plan import Address, DefaultRoute, InterfacePlan, ReplacedRoute, Route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_VERSION = 2
_VERSIONS = (1, 2)  # what is read; records of version 1 do not tell network and host_netns

_KINDS = {"addresses": Address, "routes": Route, "defaults": DefaultRoute}  # what the lists of a plan hold

_ATTEMPT = re.compile(r"[0-9a-f]{16}")


class AttachedInterface(NamedTuple):
    """An interface of the attachment: its uuid and position at the agent, and what it was planned to be."""

    uuid: str
    position: int
    plan: InterfacePlan


class Record(NamedTuple):
    """One attachment. `machine` is the VM's uuid, `machine_name` its name; `netns` is CNI_NETNS as it was given.

    `attempt` is of the ADD that wrote it; `state.owners` tells whether that still runs. Without interfaces, nothing has
    been made or told yet. `stock`: the agent is a stock one, which forgets all ports of a VM at once and wants files
    for them. `replaced` are the default routes that stood before asked-for ones took their place. `network` is the name
    of the network configuration, `host_netns` the identity of the namespace where the host ends are, `sandbox_id` the
    number of the sandbox there, -1 if it is not known (`link.netns_ids`).
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
    network: str = ""
    host_netns: str = ""
    sandbox_id: int = -1

    def holds_primary(self) -> bool:
        """Whether index 0 of the pod is attached by it."""
        return any(each.position == 0 for each in self.interfaces)


def encode_record(record: Record) -> bytes:
    """Forms the file's content."""
    others = {"version": _VERSION, **record._asdict(), "replaced": [each._asdict() for each in record.replaced]}
    del others["interfaces"]
    return f'{json.dumps(others)[:-1]}, "interfaces": {_encoded(record.interfaces)}}}'.encode()


@functools.lru_cache(maxsize=4)  # an ADD writes them twice
def _encoded(interfaces: tuple[AttachedInterface, ...]) -> str:
    return json.dumps(_interface_documents(interfaces))


def decode_record(data: bytes) -> Record:
    """Reads the file's content; raises `ValueError` if it is no record of a version that is read."""
    try:
        return _record(json.loads(data))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"no record: {error}") from error


def _interface_documents(interfaces: tuple[AttachedInterface, ...]) -> list[dict[str, Any]]:
    return [{**each._asdict(), "plan": _plan_document(each.plan)} for each in interfaces]


def _plan_document(plan: InterfacePlan) -> dict[str, Any]:
    lists = {key: [each._asdict() for each in getattr(plan, key)] for key in _KINDS}
    return {**plan._asdict(), **lists}


def _record(document: dict[str, Any]) -> Record:
    if (version := document.pop("version")) not in _VERSIONS:
        raise ValueError(f"version {version}")
    _check_shape(document, _SHAPE, "")
    if not _ATTEMPT.fullmatch(document["attempt"]):
        raise ValueError("attempt is not 16 hexadecimal digits")
    interfaces = tuple(_interface(each) for each in document.pop("interfaces"))
    replaced = tuple(ReplacedRoute(**each) for each in document.pop("replaced"))
    return Record(**document, interfaces=interfaces, replaced=replaced)


def _interface(document: Mapping[str, Any]) -> AttachedInterface:
    plan = dict(document["plan"])
    for key, kind in _KINDS.items():
        plan[key] = tuple(kind(**each) for each in plan[key])
    return AttachedInterface(document["uuid"], document["position"], InterfacePlan(**plan))


def _check_shape(value: Any, shape: Any, where: str) -> None:
    """Raises TypeError where a value is of another type than in `shape`, in which None stands for text or null."""
    kind: Any = (str, type(None)) if shape is None else type(shape)
    if not isinstance(value, kind):
        raise TypeError(f"{where} is {type(value).__name__}")
    if isinstance(shape, dict):
        for key in shape.keys() & value.keys():
            _check_shape(value[key], shape[key], f"{where}.{key}")
    elif isinstance(shape, list):
        for each in value:
            _check_shape(each, shape[0], where)


_PLAN = InterfacePlan("", "", "", "", 0, (Address("", 0),), (Route("", None),), (DefaultRoute("", asked=False),))
_SHAPE = json.loads(
    encode_record(
        Record(
            *("", "", "", ""),
            thick=False,
            interfaces=(AttachedInterface("", 0, _PLAN),),
            replaced=(ReplacedRoute(0, None, "", 0),),
        )
    )
)
