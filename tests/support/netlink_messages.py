"""Netlink messages as pyroute2 decodes them, and strategies for their values."""

from typing import Any

from hypothesis import strategies as some

from cni_contrail.link import message
from cni_contrail.link.links import LinkRef
from cni_contrail.link.message import NetlinkRequest

REQUEST, ACKNOWLEDGE = 0x1, 0x4
EXCLUSIVELY = REQUEST | ACKNOWLEDGE | 0x400 | 0x200
UP = 0x1

indexes = some.integers(1, (1 << 31) - 1)
names = some.from_regex(r"[A-Za-z0-9_.-]{1,15}", fullmatch=True).filter(lambda name: name not in ("all", "default"))
aliases = some.text(some.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60)
macs = some.binary(min_size=6, max_size=6).map(lambda mac: mac.hex(":"))
ends = some.builds(LinkRef, names, indexes)


def decoded(request: NetlinkRequest, kind: type) -> tuple[dict[str, Any], dict[str, Any]]:
    """Decodes by pyroute2: the fixed fields, including the header's, and the attributes."""
    read = kind(message.datagram([request], 77))
    read.decode()
    header = read["header"]
    assert (header["sequence_number"], header["pid"]) == (77, 0)
    assert header["length"] == len(message.datagram([request], 77))
    fields = {name: read[name] for name, _ in kind.fields if name != "__align"}  # type: ignore[attr-defined]  # pyroute2's
    return {**fields, "type_": header["type"], "flags_": header["flags"]}, plain(read)


def plain(read: Any) -> dict[str, Any]:
    """Attributes by name, nested ones too; each type at most once."""
    names = [cell[0] for cell in read["attrs"]]
    assert len(names) == len(set(names))
    return {
        cell[0]: plain(cell[1]) if isinstance(cell[1], dict) and "attrs" in cell[1] else cell[1]
        for cell in read["attrs"]
    }


def link_fields(**changes: int) -> dict[str, int]:
    return {"family": 0, "ifi_type": 0, "index": 0, "flags": 0, "change": 0, **changes}
