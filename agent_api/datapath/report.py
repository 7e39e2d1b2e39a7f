"""Report of the process that programs the kernel, as in the body of `POST /datapath`: bounded."""

from typing import Annotated

import msgspec

from agent_api.request_decoding import decode_body

_MAX_NETWORKS = 4096  # in a report; a node has hundreds
_END = r"$(?!\n)"  # in Python `$` also matches before a final newline, and JSON schemas know no `\Z`
_MAX_KINDS = 64
_MAX_NUMBER = 2**53 - 1  # what every JSON reader can represent

Vni = Annotated[str, msgspec.Meta(pattern=rf"^(0|[1-9][0-9]{{0,7}}){_END}")]
"""A key of the maps: the VNI in decimal, or 0 for the routed ports of index 0."""

VniNumber = Annotated[int, msgspec.Meta(ge=0, le=2**24 - 1)]
Number = Annotated[int, msgspec.Meta(ge=0, le=_MAX_NUMBER)]
Version = Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=rf"^[!-~]*{_END}")]
Problem = Annotated[str, msgspec.Meta(min_length=1, max_length=512, pattern=rf"^[^\x00-\x1f\x7f]*{_END}")]
Link = Annotated[str, msgspec.Meta(pattern=rf"^[^/:\s\x00-\x1f\x7f]{{1,15}}{_END}")]
Kind = Annotated[str, msgspec.Meta(pattern=rf"^[a-z][a-z-]{{0,31}}{_END}")]
Cidr = Annotated[str, msgspec.Meta(pattern=rf"^[0-9a-f:.]{{2,45}}/[0-9]{{1,3}}{_END}")]
Module = Annotated[str, msgspec.Meta(pattern=rf"^[a-z0-9_]{{1,64}}{_END}")]
Links = Annotated[tuple[Link, ...], msgspec.Meta(max_length=_MAX_NETWORKS)]


class Drops(msgspec.Struct, frozen=True, rename="kebab"):
    """Packets that a network's filter dropped since it was made, by reason.

    `tunnel`, of index 0 alone: tunnel packets from addresses that are not those of known nodes. `mtu`, of networks
    alone: packets that were too large to be routed. `ports`: as spoofing, by link.
    """

    spoofing: Number = 0
    broadcast: Number = 0
    tunnel: Number = 0
    mtu: Number = 0
    ports: Annotated[dict[Link, Number], msgspec.Meta(max_length=_MAX_NETWORKS)] = {}


class Counters(msgspec.Struct, frozen=True, array_like=True):
    """What the host end of a port has received from its pod and sent to it since it was created; an array.

    An array since a node has thousands of them.
    """

    received_packets: Number
    received_bytes: Number
    sent_packets: Number
    sent_bytes: Number


PortCounters = Annotated[
    dict[Vni, Annotated[dict[Link, Counters], msgspec.Meta(max_length=_MAX_NETWORKS)]],
    msgspec.Meta(max_length=_MAX_NETWORKS),
]


class RefusedRoute(msgspec.Struct, frozen=True, rename="kebab"):
    """A subnet of the network with number `vni` that has no route, and what it overlaps, `by` another network or not.

    `reason` is a word; a newer process may have others than this agent knows.
    """

    vni: Annotated[int, msgspec.Meta(ge=1, le=2**24 - 1)]
    subnet: Cidr
    reason: Annotated[str, msgspec.Meta(pattern=rf"^[a-z][a-z0-9-]{{0,31}}{_END}")]
    overlaps: Annotated[str, msgspec.Meta(max_length=49, pattern=rf"^[0-9a-f:./]*{_END}")] = ""
    by: Annotated[int, msgspec.Meta(ge=0, le=2**24 - 1)] = 0


class DatapathReport(msgspec.Struct, frozen=True, rename="kebab"):
    """The state of the kernel after it was brought to `version` of the desired state, in `seconds`.

    `changes` and `repaired` count since the previous report: objects changed because the desired state changed, and
    because somebody else had changed them; `repairs` are those of networks, by kind of what had been changed, and
    `repaired_networks` the same by VNI.
    `problems` says what is not as desired, `missing` lists the links of desired ports that do not exist; both are
    complete, by VNI. `unconnected` are the numbers of networks whose pods on other nodes were not made reachable, since
    that failed. `refused` are subnets without a route, which is no problem. `tunnel_mtu` is the longest packet of a pod
    that fits the node's tunnels, None if that is not known. `missing_modules` are those of the kernel that `problems`
    name as missing. `daemon_version` is that of the node daemon, None if another program sent the report. `counters`
    are those of ports by link, None if they were not read for this report, and those of an earlier one continue.

    Unknown keys are those of a newer process, and ignored.
    """

    version: Version
    changes: Number
    repaired: Number
    seconds: Annotated[float, msgspec.Meta(ge=0, le=1e6)]
    problems: Annotated[dict[Vni, Problem], msgspec.Meta(max_length=_MAX_NETWORKS)] = {}
    missing: Annotated[dict[Vni, Links], msgspec.Meta(max_length=_MAX_NETWORKS)] = {}
    drops: Annotated[dict[Vni, Drops], msgspec.Meta(max_length=_MAX_NETWORKS)] = {}
    repairs: Annotated[dict[Kind, Number], msgspec.Meta(max_length=_MAX_KINDS)] = {}
    repaired_networks: Annotated[dict[Vni, Number], msgspec.Meta(max_length=_MAX_NETWORKS)] = {}
    refused: Annotated[tuple[RefusedRoute, ...], msgspec.Meta(max_length=_MAX_NETWORKS)] = ()
    unconnected: Annotated[tuple[VniNumber, ...], msgspec.Meta(max_length=_MAX_NETWORKS)] = ()
    tunnel_mtu: Annotated[int, msgspec.Meta(ge=1, le=65535)] | None = None
    missing_modules: Annotated[tuple[Module, ...], msgspec.Meta(max_length=_MAX_KINDS)] = ()
    daemon_version: Version | None = None
    counters: PortCounters | None = None


_decoder = msgspec.json.Decoder(DatapathReport)


def parse_report(body: bytes) -> DatapathReport:
    """Returns the report in a body. Raises BadRequestError."""
    return decode_body(body, _decoder)
