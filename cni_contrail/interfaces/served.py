"""A pod's interfaces as the agent serves them, strictly validated.

A malformed answer is one error that names item and key. An incomplete list of the Contrail vrouter agent (an annotation
or some items are missing) is not malformed: `ServedList.missing` says what it lacks, and the caller retries. The
Contrail vrouter agent is recognized by its items: they have none of the address keys that our agent adds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cni_contrail.errors import Code, PluginError, RejectedError
from cni_contrail.interfaces.fields import UUID, Fields
from cni_contrail.link.bridge_port import BRIDGE
from cni_contrail.link.host_side import is_network_name
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.plan import Address, Route
from cni_contrail.quoting import cut, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OUR_KEYS = ("ip-address", "v6-ip-address", "mtu")
_VROUTER_AGENT_V6_PREFIX_LENGTH = 64  # the Contrail vrouter agent serves none
_DEFAULT_GATEWAY = {"true": (4, 6), "ipv4": (4,), "ipv6": (6,), "none": ()}
_MAX_VLAN = 4094
_MAX_VNI = (1 << 24) - 1
_NO_VLAN = 65535  # upstream's value for none
_MAX_NAMED = 8  # missing indexes named in an error


class ServedAddress(NamedTuple):
    """An address with gateway and name server of its subnet, None without one. `family` is 4 or 6."""

    family: int
    address: Address
    gateway: str | None
    dns: str | None


class ServedPort(NamedTuple):
    """A plugged interface as the Contrail vrouter agent reports it: its device on the host, and its addresses."""

    device: str
    addresses: tuple[ServedAddress, ...]


class ServedInterface(NamedTuple):
    """One interface of a pod, at `position` (from 0) of `total`: the two numbers of its index.

    `addresses` is None until the Contrail vrouter agent reports them; `mtu` is in bytes, None if the plugin's settings
    apply. `namespace` is that of its network where a datapath connects the interface to the network's bridge; `routed`
    are gateways of its subnets, by which it reaches even these. With them and without a namespace the datapath routes
    it in the host's, and isolates it with the other interfaces of the network `isolated_network`, unless that is 0.
    `vlan_id` is as the agent states it, whatever that is: only nested mode needs one.
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
    vlan_id: object = None
    namespace: str = ""
    routed: tuple[str, ...] = ()
    isolated_network: int = 0

    def __str__(self) -> str:
        return f"{self.position} ({self.annotations.get('nad') or self.annotations.get('network')}, {self.uuid})"

    def checked_vlan_id(self) -> int:
        """Returns the number of the VLAN that carries the interface; raises `PluginError` with code 100."""
        vlan_id = self.vlan_id
        if isinstance(vlan_id, int) and not isinstance(vlan_id, bool) and 1 <= vlan_id <= _MAX_VLAN:
            return vlan_id
        reason = "which means none: the agent has no VLAN for it" if vlan_id in (None, _NO_VLAN) else "out of range"
        raise PluginError(
            Code.BAD_AGENT_RESPONSE,
            f"interface {self}: vlan-id must be a whole number from 1 to {_MAX_VLAN} (vif-type macvlan), "
            f"not {quoted(vlan_id)}, {reason}",
        )

    def requests_default(self, family: int) -> bool:
        """Returns whether the annotation `default-gw` requests the default route of the family for this interface."""
        return family in _DEFAULT_GATEWAY[self.annotations.get("default-gw", "none")]

    @property
    def expected_families(self) -> tuple[int, ...]:
        """Families in which an annotation says that there is an address.

        `families` is that of a manager whose store is a Contrail API server; `default-gw: true` says it of none.
        """
        wanted = self.annotations.get("default-gw", "none")
        requested = () if wanted == "true" else _DEFAULT_GATEWAY[wanted]
        stated = self.annotations.get("families", "").split(",")
        return tuple(family for family in (4, 6) if family in requested or str(family) in stated)

    @property
    def disables_default(self) -> bool:
        """Whether the annotation `default-gw` is `none`: the pod gets no default route by fallback."""
        return self.annotations.get("default-gw") == "none"

    def gateway(self, family: int) -> str | None:
        """Returns the gateway of its address in the family; None without address or gateway, or if they are unknown."""
        return next((each.gateway for each in self.addresses or () if each.family == family), None)


class ServedList(NamedTuple):
    """The answer to `/vm-cfg` in index order; `unindexed` are the uuids of items that have no index yet.

    `vrouter_agent`: it comes from the Contrail vrouter agent.
    """

    interfaces: tuple[ServedInterface, ...]
    unindexed: tuple[str, ...]
    vm_uuid: str
    vrouter_agent: bool

    def missing(self, pod_uid: str) -> str | None:
        """Returns what is missing for this to be the complete list of the pod, None if it is complete."""
        if not self.interfaces and not self.unindexed:
            return "the list of interfaces is empty"
        # The Contrail vrouter agent ignores the requested uid and may serve the predecessor of the same name.
        if self.vrouter_agent and UUID.fullmatch(pod_uid) and self.vm_uuid != pod_uid:
            return f"the interfaces are still those of pod uid {self.vm_uuid}, not of {pod_uid}"
        if self.unindexed:
            return f"interface {', '.join(self.unindexed)} has no index yet"
        return self._gap()

    def _gap(self) -> str | None:
        indexes = ", ".join(f"{each.position}/{each.total}" for each in self.interfaces)
        totals = {each.total for each in self.interfaces}
        if len(totals) > 1:
            return f"the indexes disagree on the number of interfaces: {indexes}"
        total = totals.pop()
        found = {each.position for each in self.interfaces}
        if len(found) < len(self.interfaces):
            return f"duplicate index: {indexes}"
        # Bounded: the total comes from an annotation and may be 999999.
        absent = [str(each) for each in range(min(total, _MAX_NAMED + len(found))) if each not in found]
        if absent:
            return f"of {total} interfaces, index {', '.join(absent[:_MAX_NAMED])} is missing"
        return None


def read_list(items: Sequence[Any]) -> ServedList:
    """Validates the answer to `/vm-cfg`.

    Raises `PluginError` with code 100 if it is malformed, `RejectedError` if an interface must not be connected.
    """
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


def read_ports(items: Sequence[Any]) -> dict[str, ServedPort]:
    """Validates the answer of the Contrail vrouter agent to `GET /vm` and returns ports by interface uuid.

    Raises `PluginError` with code 100 if it is malformed.
    """
    fields = [Fields(item, position) for position, item in enumerate(items)]
    return {each.uuid("id"): _port(each) for each in fields}


def _port(fields: Fields) -> ServedPort:
    addresses = _addresses(fields, v6_prefix_length=_VROUTER_AGENT_V6_PREFIX_LENGTH)
    return ServedPort(fields.text("system-name"), addresses)


def _interface(fields: Fields, vm_uuid: str, *, vrouter_agent: bool) -> ServedInterface:
    position, total = fields.index()
    if fields.has("refused"):
        raise RejectedError(f"interface {position}: {cut(fields.text('refused'))}")
    if fields.annotations.get("default-gw", "none") not in _DEFAULT_GATEWAY:
        raise fields.malformed("annotations", f"a list with a valid default-gw, one of {', '.join(_DEFAULT_GATEWAY)}")
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
        vlan_id=fields.raw("vlan-id"),
        namespace=_network_namespace(fields),
        routed=fields.gateways("routed"),
        isolated_network=fields.number("isolated-network", 0, _MAX_VNI) if fields.has("isolated-network") else 0,
    )


def _network_namespace(fields: Fields) -> str:
    if not fields.has("network-namespace"):
        return ""
    if fields.raw("bridge") != BRIDGE:
        raise fields.malformed("bridge", f"{BRIDGE}, beside network-namespace")
    namespace = fields.text("network-namespace")
    if not is_network_name(namespace):
        raise fields.malformed("network-namespace", "contrail-<vni>")
    return namespace


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
