"""Record of one attachment: everything that DEL, CHECK and the next ADD of the container need to know about it.

ADD writes it up to three times: without interfaces, if it has to wait for the agent; completely, before the first link
is created, so that everything a killed ADD leaves behind can be found; and with `finished` at the end.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping

from cni_contrail.link.named_tuple import NamedTuple, known_fields
from cni_contrail.link.plan import Address, DefaultRoute, InterfacePlan, ReplacedRoute, Route, SourceRouting
from cni_contrail.link.remove import HostLink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Of the file format; no other version is read. Fields may be added without a new one if a release that ignores them, as
# each one ignores what it does not know, still removes all that the attachment has.
_VERSION = 2

# Keys of the file are the field names, except these.
_KEYS = {"vm_uuid": "machine", "vm_name": "machine_name", "vrouter_agent": "stock"}

_PLAN_LISTS = {
    "addresses": Address,
    "routes": Route,
    "defaults": DefaultRoute,
    "source_routing": SourceRouting,
}  # types of their elements

_ATTEMPT = re.compile(r"[0-9a-f]{16}")


class AttachedInterface(NamedTuple):
    """An interface of the attachment: its uuid and position in the agent's list, and its plan."""

    uuid: str
    position: int
    plan: InterfacePlan


class Record(NamedTuple):
    """One attachment. `netns` is CNI_NETNS as the runtime passed it.

    `attempt` identifies the ADD that wrote it; `state.attempt_locks` says whether that ADD still runs. Without
    interfaces, nothing has been created and the agent knows no port yet. `vrouter_agent`: the agent is the Contrail
    vrouter agent, which removes all ports of a VM at once and needs a file per port. `replaced` are the default routes
    that requested ones replaced. `network` is the name of the network configuration, `host_netns` the identity of the
    namespace of the host ends, `sandbox_netns` that of the sandbox, and `sandbox_id` the ID of the sandbox in the
    former, -1 until ADD has finished (`link.netns_ids`).
    `isolated`: the host ends were created isolated (`links.set_host_end`); earlier versions did not do that.
    """

    container_id: str
    ifname: str
    attempt: str
    netns: str
    thick: bool
    vrouter_agent: bool = False
    vm_uuid: str = ""
    vm_name: str = ""
    interfaces: tuple[AttachedInterface, ...] = ()
    replaced: tuple[ReplacedRoute, ...] = ()
    finished: bool = False
    network: str = ""
    host_netns: str = ""
    sandbox_netns: str = ""
    sandbox_id: int = -1
    isolated: bool = False

    @property
    def is_nested(self) -> bool:
        """Whether its interfaces are macvlans: there are no host ends, and the agent knows no ports of it."""
        return any(each.plan.vlan_id for each in self.interfaces)

    @property
    def has_datapath(self) -> bool:
        """Whether a datapath connects any of its interfaces."""
        return any(each.plan.namespace or each.plan.routed for each in self.interfaces)

    @property
    def in_networks(self) -> bool:
        """Whether any of its host ends is in the namespace of a network."""
        return any(each.plan.namespace for each in self.interfaces)

    def host_links(self) -> list[HostLink]:
        """Returns its host ends."""
        plans = [each.plan for each in self.interfaces]
        return [HostLink(plan.host_name, plan.alias, plan.namespace) for plan in plans]

    def holds_primary(self) -> bool:
        """Whether this attachment includes index 0 of the pod."""
        return any(each.position == 0 for each in self.interfaces)


def encode_record(record: Record) -> bytes:
    """Returns the content of the record's file."""
    others = {"version": _VERSION, **record._asdict(), "replaced": [each._asdict() for each in record.replaced]}
    del others["interfaces"]
    for field, key in _KEYS.items():
        others[key] = others.pop(field)
    return f'{json.dumps(others)[:-1]}, "interfaces": {_encoded(record.interfaces)}}}'.encode()


@functools.lru_cache(maxsize=4)  # an ADD writes the same interfaces twice, and encoding them is most of the work
def _encoded(interfaces: tuple[AttachedInterface, ...]) -> str:
    return json.dumps(_interface_documents(interfaces))


def decode_record(data: bytes) -> Record:
    """Parses the content of a record's file; raises `ValueError` if it is malformed or of another version."""
    try:
        return _record(json.loads(data))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a record: {error}") from error


def _interface_documents(interfaces: tuple[AttachedInterface, ...]) -> list[dict[str, Any]]:
    return [{**each._asdict(), "plan": _plan_document(each.plan)} for each in interfaces]


def _plan_document(plan: InterfacePlan) -> dict[str, Any]:
    lists = {key: [each._asdict() for each in getattr(plan, key)] for key in _PLAN_LISTS}
    return {**plan._asdict(), **lists}


def _record(document: dict[str, Any]) -> Record:
    if (version := document.pop("version")) != _VERSION:
        raise ValueError(f"unsupported version {version}, expected {_VERSION}")
    _check_shape(document, _SHAPE, "")
    if not _ATTEMPT.fullmatch(document["attempt"]):
        raise ValueError("attempt is not 16 hexadecimal digits")
    interfaces = tuple(_interface(each) for each in document.pop("interfaces"))
    replaced = tuple(ReplacedRoute(**known_fields(ReplacedRoute, each)) for each in document.pop("replaced"))
    for field, key in _KEYS.items():
        document[field] = document.pop(key)
    return Record(**known_fields(Record, document), interfaces=interfaces, replaced=replaced)


def _interface(document: Mapping[str, Any]) -> AttachedInterface:
    plan = dict(document["plan"])
    for key, kind in _PLAN_LISTS.items():
        # Earlier versions wrote fewer lists.
        plan[key] = tuple(kind(**known_fields(kind, each)) for each in plan.get(key, ()))
    plan["routed"] = tuple(plan.get("routed", ()))
    return AttachedInterface(document["uuid"], document["position"], InterfacePlan(**known_fields(InterfacePlan, plan)))


def _check_shape(value: Any, shape: Any, where: str) -> None:
    """Raises TypeError where a value has another type than in `shape`, in which None means string or null."""
    kind: Any = (str, type(None)) if shape is None else type(shape)
    if not isinstance(value, kind):
        raise TypeError(f"{where} is {type(value).__name__}")
    if isinstance(shape, dict):
        for key in shape.keys() & value.keys():
            _check_shape(value[key], shape[key], f"{where}.{key}")
    elif isinstance(shape, list):
        for each in value:
            _check_shape(each, shape[0], where)


_PLAN = InterfacePlan(
    "",
    "",
    "",
    "",
    0,
    (Address("", 0),),
    (Route("", None),),
    (DefaultRoute("", asked=False),),
    (SourceRouting("", 0, None, 0),),
    routed=("",),
)
# Derived from the types themselves, so that it cannot differ from them.
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
