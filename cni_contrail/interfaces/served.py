"""A pod's interfaces as the agent serves them, read strictly.

An agent that answers nonsense is one clear error that names item and key. What a stock agent may still lack (an
annotation, a part of the list) is no nonsense: `ServedList.missing` says it, and the caller waits. A stock agent is
known by its items: they bear none of the address keys that ours adds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cni_contrail.interfaces.fields import UUID, Fields
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.plan import Address, Route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OUR_KEYS = ("ip-address", "v6-ip-address", "mtu")
_VROUTER_AGENT_V6_PREFIX_LENGTH = 64  # a stock agent tells none
_DEFAULT_GATEWAY = {"true": (4, 6), "ipv4": (4,), "ipv6": (6,), "none": ()}
_NAMED_AT_MOST = 8


class ServedAddress(NamedTuple):
    """An address with its subnet's gateway and name server, None if there is none. `family` is 4 or 6."""

    family: int
    address: Address
    gateway: str | None
    dns: str | None


class ServedInterface(NamedTuple):
    """One interface of a pod, at `position` (from 0) of `total`: the two numbers of its index.

    `addresses` is None while a stock agent has not told them; `mtu` is in bytes, None if the agent leaves it to the
    plugin's settings.
    """

    uuid: str
    vm_uuid: str
    network: str
    mac: str
    position: int
    total: int
    annotations: Mapping[str, str]
    addresses: tuple[ServedAddress, ...] | None
    mtu: int | None
    routes: tuple[Route, ...]

    def __str__(self) -> str:
        return f"{self.position} ({self.annotations.get('nad') or self.annotations.get('network')}, {self.uuid})"

    def requests_default(self, family: int) -> bool:
        """Whether the annotation `default-gw` wants the default route of that family here."""
        return family in _DEFAULT_GATEWAY[self.annotations.get("default-gw", "none")]

    @property
    def disables_default(self) -> bool:
        """Whether the annotation says that the default routes go nowhere."""
        return self.annotations.get("default-gw") == "none"

    def gateway(self, family: int) -> str | None:
        """Gateway of its address in that family; None without address or gateway, or if addresses are not known."""
        return next((each.gateway for each in self.addresses or () if each.family == family), None)


class ServedList(NamedTuple):
    """What `/vm-cfg` answers, in the order of the indexes; `unindexed` are uuids of items that bear no index yet."""

    interfaces: tuple[ServedInterface, ...]
    unindexed: tuple[str, ...]
    vm_uuid: str
    vrouter_agent: bool

    def missing(self, pod_uid: str) -> str | None:
        """Says what is missing for this to be the whole list of the pod, None if nothing is."""
        if not self.interfaces and not self.unindexed:
            return "the list of interfaces is empty"
        if self.vrouter_agent and UUID.fullmatch(pod_uid) and self.vm_uuid != pod_uid:
            return f"the interfaces are still those of pod uid {self.vm_uuid}, not of {pod_uid}"
        if self.unindexed:
            return f"interface {', '.join(self.unindexed)} bears no index yet"
        return self._gap()

    def _gap(self) -> str | None:
        said = ", ".join(f"{each.position}/{each.total}" for each in self.interfaces)
        totals = {each.total for each in self.interfaces}
        if len(totals) > 1:
            return f"the indexes disagree on the number of interfaces: {said}"
        total = totals.pop()
        found = {each.position for each in self.interfaces}
        if len(found) < len(self.interfaces):
            return f"an index is there twice: {said}"
        absent = [str(each) for each in range(min(total, _NAMED_AT_MOST + len(found))) if each not in found]
        if absent:
            return f"of {total} interfaces, index {', '.join(absent[:_NAMED_AT_MOST])} is missing"
        return None


def read_list(items: Sequence[Any]) -> ServedList:
    """Reads the answer to `/vm-cfg`; raises `PluginError` with code 100 for nonsense."""
    fields = [Fields(item, position) for position, item in enumerate(items)]
    vrouter_agent = not any(each.has(key) for each in fields for key in _OUR_KEYS)
    vm_uuids = [each.uuid("vm-uuid") for each in fields]
    for each, vm_uuid in zip(fields, vm_uuids, strict=True):
        if vm_uuid != vm_uuids[0]:
            raise each.malformed("vm-uuid", f"{vm_uuids[0]}, as in the item before")
    indexed = [each for each in fields if "index" in each.annotations]
    interfaces = [_interface(each, vm_uuids[0], vrouter_agent=vrouter_agent) for each in indexed]
    return ServedList(
        interfaces=tuple(sorted(interfaces, key=_position)),
        unindexed=tuple(each.uuid("id") for each in fields if "index" not in each.annotations),
        vm_uuid=vm_uuids[0] if vm_uuids else "",
        vrouter_agent=vrouter_agent,
    )


def read_ports(items: Sequence[Any]) -> dict[str, tuple[ServedAddress, ...]]:
    """Reads a stock agent's answer to `GET /vm`: addresses by interface uuid; raises code 100 for nonsense."""
    fields = [Fields(item, position) for position, item in enumerate(items)]
    return {each.uuid("id"): _addresses(each, v6_prefix_length=_VROUTER_AGENT_V6_PREFIX_LENGTH) for each in fields}


def _interface(fields: Fields, vm_uuid: str, *, vrouter_agent: bool) -> ServedInterface:
    position, total = fields.index()
    if fields.annotations.get("default-gw", "none") not in _DEFAULT_GATEWAY:
        raise fields.malformed("annotations", f"right about default-gw: one of {', '.join(_DEFAULT_GATEWAY)}")
    return ServedInterface(
        uuid=fields.uuid("id"),
        vm_uuid=vm_uuid,
        network=fields.uuid("vn-id"),
        mac=fields.mac("mac-address"),
        position=position,
        total=total,
        annotations=fields.annotations,
        addresses=None if vrouter_agent else _addresses(fields, v6_prefix_length=None),
        mtu=fields.number("mtu", 68, 65535) if fields.has("mtu") else None,
        routes=fields.routes("routes"),
    )


def _position(interface: ServedInterface) -> int:
    return interface.position


def _addresses(fields: Fields, *, v6_prefix_length: int | None) -> tuple[ServedAddress, ...]:
    found: Iterable[ServedAddress | None] = (
        _address(fields, 4, "", None),
        _address(fields, 6, "v6-", v6_prefix_length),
    )
    return tuple(each for each in found if each)


def _address(fields: Fields, family: int, prefix: str, prefix_length: int | None) -> ServedAddress | None:
    if not fields.has(f"{prefix}ip-address"):
        return None
    if prefix_length is None or fields.has(f"{prefix}plen"):
        prefix_length = fields.number(f"{prefix}plen", 0, 32 if family == 4 else 128)
    return ServedAddress(
        family=family,
        address=Address(fields.address(f"{prefix}ip-address", family), prefix_length),
        gateway=fields.address_or_none(f"{prefix}gateway", family),
        dns=fields.address_or_none(f"{prefix}dns-server", None),
    )
