"""nf_tables messages: tables, chains, sets with concatenated keys, rules and set elements.

Sources: linux/netfilter/nf_tables.h, linux/netfilter/nfnetlink.h. Unlike in rtnetlink, numbers are in network byte
order. Registers are 4 bytes each here (NFT_REG32_00 and on), so a concatenated key is loaded field by field, each field
padded to 4 bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from cni_contrail.link.message import (
    CREATE,
    DUMP,
    NetlinkRequest,
    attribute,
    attributes,
    nested,
    padded,
)
from cni_contrail.link.named_tuple import NamedTuple

BRIDGE = 7  # NFPROTO_BRIDGE
_SUBSYSTEM = 10 << 8  # NFNL_SUBSYS_NFTABLES
_NEW_TABLE, _GET_TABLE, _DELETE_TABLE = _SUBSYSTEM | 0, _SUBSYSTEM | 1, _SUBSYSTEM | 2
_NEW_CHAIN = _SUBSYSTEM | 3
_NEW_RULE, _GET_RULE = _SUBSYSTEM | 6, _SUBSYSTEM | 7
_NEW_SET = _SUBSYSTEM | 9
_NEW_ELEMENTS, _GET_ELEMENTS, _DELETE_ELEMENTS = _SUBSYSTEM | 12, _SUBSYSTEM | 13, _SUBSYSTEM | 14
_APPEND = 0x800  # NLM_F_APPEND: behind the chain's other rules
_HEADER = struct.Struct("!BBH")  # struct nfgenmsg: family, version, resource
_NUMBER = struct.Struct("!I")

_LIST_ELEM = 1  # NFTA_LIST_ELEM
_DATA_VALUE, _DATA_VERDICT = 1, 2
_EXPR_NAME, _EXPR_DATA = 1, 2
_FIRST_REGISTER = 8  # NFT_REG32_00
_VERDICT_REGISTER = 0
ACCEPT, DROP = 1, 0

LINK_LAYER, NETWORK, TRANSPORT = 0, 1, 2  # bases of payload offsets
IIF, L4PROTO = 4, 16  # NFT_META_...
_SET_CONCATENATION = 0x80  # NFT_SET_CONCAT

Expression = bytes
"""One step of a rule, encoded."""


class KeyField(NamedTuple):
    """A part of a set's key: its type as nft(8) numbers it, for `nft list`, and its length in bytes."""

    kind: int
    length: int


INTERFACE, MAC, IPV4, IPV6 = KeyField(20, 4), KeyField(9, 6), KeyField(7, 4), KeyField(8, 16)
_TYPE_BITS = 6  # of each field in the number of a concatenated type


def new_table(table: str) -> NetlinkRequest:
    """Requests a table of the bridge family; one that exists stays."""
    return _request(_NEW_TABLE, CREATE, _text(1, table), what=f"create table {table}")


def get_table(table: str) -> NetlinkRequest:
    """Requests a table of the bridge family; ENOENT if there is none."""
    return _request(_GET_TABLE, 0, _text(1, table), what=f"find table {table}")


def delete_table(table: str) -> NetlinkRequest:
    """Requests to delete a table and everything in it."""
    return _request(_DELETE_TABLE, 0, _text(1, table), what=f"delete table {table}")


def new_chain(table: str, chain: str, *, hook: int, priority: int, policy: int) -> NetlinkRequest:
    """Requests a base chain of type `filter`."""
    where = nested(4, _number(1, hook), _number(2, priority & 0xFFFFFFFF))
    body = (_text(1, table), _text(3, chain), where, _number(5, policy), _text(7, "filter"))
    return _request(_NEW_CHAIN, CREATE, *body, what=f"create chain {chain}")


def new_set(table: str, name: str, key: Sequence[KeyField], identifier: int) -> NetlinkRequest:
    """Requests a set whose elements are concatenations of the fields; `identifier` is unique in the transaction."""
    kind = 0
    for field in key:
        kind = kind << _TYPE_BITS | field.kind
    fields = nested(2, *(nested(_LIST_ELEM, _number(1, field.length)) for field in key))
    body = (
        _text(1, table),
        _text(2, name),
        _number(3, _SET_CONCATENATION),
        _number(4, kind),
        _number(5, sum(padded(field.length) for field in key)),
        nested(9, fields),
        _number(10, identifier),
    )
    return _request(_NEW_SET, CREATE, *body, what=f"create set {name}")


def new_rule(table: str, chain: str, expressions: Iterable[Expression]) -> NetlinkRequest:
    """Requests a rule behind the chain's other rules."""
    body = (_text(1, table), _text(2, chain), nested(4, *expressions))
    return _request(_NEW_RULE, CREATE | _APPEND, *body, what=f"add a rule to chain {chain}")


def add_elements(table: str, name: str, keys: Iterable[bytes]) -> NetlinkRequest:
    """Requests elements of a set; those that exist stay."""
    return _request(_NEW_ELEMENTS, CREATE, *_elements(table, name, keys), what=f"add elements to set {name}")


def delete_elements(table: str, name: str, keys: Iterable[bytes]) -> NetlinkRequest:
    """Requests to delete elements of a set; ENOENT if one does not exist."""
    return _request(_DELETE_ELEMENTS, 0, *_elements(table, name, keys), what=f"delete elements of set {name}")


def dump_elements(table: str, name: str) -> NetlinkRequest:
    """Requests all elements of a set; `parse_elements` reads the answers."""
    return _request(_GET_ELEMENTS, DUMP, _text(1, table), _text(2, name), what=f"read set {name}")


def dump_rules(table: str) -> NetlinkRequest:
    """Requests all rules of a table, one answer each."""
    return _request(_GET_RULE, DUMP, _text(1, table), what=f"read the rules of table {table}")


def parse_elements(body: bytes) -> list[bytes]:
    """Parses one answer to `dump_elements`: returns the keys."""
    elements = attributes(body[_HEADER.size :]).get(3, b"")
    return [attributes(attributes(element)[1])[_DATA_VALUE] for element in _list(elements)]


def key_of(parts: Iterable[bytes]) -> bytes:
    """Returns a concatenated key."""
    return b"".join(part + bytes(-len(part) & 3) for part in parts)


def load_meta(kind: int, register: int) -> Expression:
    """Loads a property of the packet that is not in it."""
    return _expression("meta", _number(1, _FIRST_REGISTER + register), _number(2, kind))


def load_payload(base: int, offset: int, length: int, register: int) -> Expression:
    """Loads bytes of the packet; the rule does not match a packet that is shorter."""
    parts = (_FIRST_REGISTER + register, base, offset, length)
    return _expression("payload", *(_number(kind, value) for kind, value in enumerate(parts, start=1)))


def mask(register: int, bits: bytes) -> Expression:
    """Clears the bits of a register that are not in `bits`."""
    at = _FIRST_REGISTER + register
    values = (nested(4, attribute(_DATA_VALUE, bits)), nested(5, attribute(_DATA_VALUE, bytes(len(bits)))))
    return _expression("bitwise", _number(1, at), _number(2, at), _number(3, len(bits)), *values)


def equals(register: int, value: bytes) -> Expression:
    """The rule matches only if the register has this value."""
    return _expression("cmp", _number(1, _FIRST_REGISTER + register), _number(2, 0), _value(3, value))


def is_element(name: str, register: int = 0) -> Expression:
    """The rule matches only if the set has the key that begins at the register."""
    return _expression("lookup", _text(1, name), _number(2, _FIRST_REGISTER + register))


def verdict(code: int) -> Expression:
    """Ends the chain with ACCEPT or DROP."""
    data = nested(2, nested(_DATA_VERDICT, _number(1, code)))
    return _expression("immediate", _number(1, _VERDICT_REGISTER), data)


def count() -> Expression:
    """Counts packets and bytes."""
    return _expression("counter")


def _request(kind: int, flags: int, *body: bytes, what: str) -> NetlinkRequest:
    return NetlinkRequest(kind, flags, _HEADER.pack(BRIDGE, 0, 0) + b"".join(body), what)


def _elements(table: str, name: str, keys: Iterable[bytes]) -> tuple[bytes, ...]:
    elements = [nested(_LIST_ELEM, nested(1, attribute(_DATA_VALUE, key))) for key in keys]
    return _text(1, table), _text(2, name), nested(3, *elements)


def _expression(name: str, *data: bytes) -> Expression:
    return nested(_LIST_ELEM, _text(_EXPR_NAME, name), nested(_EXPR_DATA, *data))


def _value(kind: int, value: bytes) -> bytes:
    return nested(kind, attribute(_DATA_VALUE, value))


def _number(kind: int, value: int) -> bytes:
    return attribute(kind, _NUMBER.pack(value))


def _text(kind: int, value: str) -> bytes:
    return attribute(kind, value.encode() + b"\0")


def _list(data: bytes) -> list[bytes]:
    """Values of attributes that all have the same type."""
    found = []
    position = 0
    while position + 4 <= len(data):
        (length,) = struct.unpack_from("=H", data, position)
        found.append(data[position + 4 : position + length])
        position += padded(max(length, 4))
    return found
