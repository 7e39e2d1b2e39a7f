"""Policy rules of a network namespace: which are the kernel's own, and what brings them back. Pure: no kernel.

A namespace begins with rules for its tables `local`, `main` and `default`, and ours use no others: our routes are in
`main`. A rule of another program before those may drop packets, or send them by a table of its own; without the one for
`main` no packet is routed.

Sources: rtnetlink(7), linux/fib_rules.h.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Collection, Iterator

from cni_contrail.link.message import CREATE, DUMP, EXCLUSIVE, NetlinkRequest, attributes, number, unpack_number
from cni_contrail.link.named_tuple import NamedTuple

_RTM_NEWRULE, _RTM_DELRULE, _RTM_GETRULE = 32, 33, 34
# struct fib_rule_hdr: family, destination length, source length, TOS, table, two reserved, action, flags
_HEADER = struct.Struct("=BBBBBBBBI")
_LOOK_UP_TABLE = 1  # FR_ACT_TO_TBL
_INVERTED = 0x2  # FIB_RULE_INVERT
_FRA_PRIORITY, _FRA_SUPPRESSED_LENGTH, _FRA_TABLE = 6, 14, 15
# Addresses, links, marks, ports and the like. A later kernel may say more of every rule, also of the first ones.
_SELECTORS = frozenset((1, 2, 3, 4, 10, 11, 12, 13, 16, 17, 19, 20, *range(22, 31)))
_NOTHING_SUPPRESSED = 0xFFFFFFFF


class PolicyRule(NamedTuple):
    """A rule that has no selector and looks up a table."""

    family: int
    priority: int
    table: int


DEFAULTS = frozenset(
    PolicyRule(family, priority, table)
    for family, rules in (
        (socket.AF_INET, ((0, 255), (32766, 254), (32767, 253))),
        (socket.AF_INET6, ((0, 255), (32766, 254))),
    )
    for priority, table in rules
)
"""Rules that each namespace has at first."""


def dump_rules() -> NetlinkRequest:
    """Requests all rules of all families."""
    return NetlinkRequest(_RTM_GETRULE, DUMP, _HEADER.pack(0, 0, 0, 0, 0, 0, 0, 0, 0), "read policy rules")


def foreign_rules(found: Collection[bytes]) -> list[bytes]:
    """Returns the rules of IPv4 and IPv6 that a namespace does not have at first, as the kernel reports them."""
    return [body for body in found if body[0] in (socket.AF_INET, socket.AF_INET6) and parse_default(body) is None]


def parse_default(body: bytes) -> PolicyRule | None:
    """Parses a rule as the kernel reports it; returns None if it is none of DEFAULTS."""
    family, *lengths_and_tos, _, _, _, action, flags = _HEADER.unpack_from(body)
    found = attributes(body[_HEADER.size :])
    if any(lengths_and_tos) or action != _LOOK_UP_TABLE or flags & _INVERTED or found.keys() & _SELECTORS:
        return None
    if _number(found, _FRA_SUPPRESSED_LENGTH, _NOTHING_SUPPRESSED) != _NOTHING_SUPPRESSED:
        return None
    rule = PolicyRule(family, _number(found, _FRA_PRIORITY, 0), _number(found, _FRA_TABLE, 0))
    return rule if rule in DEFAULTS else None


def rule_requests(found: Collection[bytes]) -> Iterator[NetlinkRequest]:
    """Requests that leave a namespace with the rules that it had at first; `found` are all that it has.

    Of the families that it has: the kernel keeps one rule of each.
    """
    families = {body[0] for body in found}
    known = {parse_default(body) for body in found}
    for rule in sorted(each for each in DEFAULTS - known if each.family in families):
        body = _HEADER.pack(rule.family, 0, 0, 0, rule.table, 0, 0, _LOOK_UP_TABLE, 0)
        body += number(_FRA_PRIORITY, rule.priority) + number(_FRA_TABLE, rule.table)
        yield NetlinkRequest(_RTM_NEWRULE, CREATE | EXCLUSIVE, body, f"add policy rule for table {rule.table}")
    for body in foreign_rules(found):
        *header, flags = _HEADER.unpack_from(body)
        same = _HEADER.pack(*header, flags & _INVERTED) + body[_HEADER.size :]
        yield NetlinkRequest(_RTM_DELRULE, 0, same, "remove a policy rule of another program")


def _number(found: dict[int, bytes], kind: int, otherwise: int) -> int:
    return unpack_number(found[kind]) if kind in found else otherwise
