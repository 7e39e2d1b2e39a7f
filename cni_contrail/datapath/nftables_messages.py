"""nf_tables messages: tables, chains, sets with concatenated keys, rules and set elements.

Sources: linux/netfilter/nf_tables.h, linux/netfilter/nfnetlink.h. Unlike in rtnetlink, numbers are in network byte
order. Registers are 4 bytes each here (NFT_REG32_00 and on), so a concatenated key is loaded field by field, each field
padded to 4 bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence

from cni_contrail.link.message import (
    CREATE,
    DUMP,
    EXCLUSIVE,
    NetlinkRequest,
    attribute,
    attributes,
    nested,
    padded,
)
from cni_contrail.link.named_tuple import NamedTuple

INET, IPV4_FAMILY, BRIDGE, IPV6_FAMILY = 1, 2, 7, 10  # NFPROTO_...; INET is both IPv4 and IPv6
_FAMILIES = {1: "inet", 2: "ip", 3: "arp", 5: "netdev", 7: "bridge", 10: "ip6"}
_SUBSYSTEM = 10 << 8  # NFNL_SUBSYS_NFTABLES
_NEW_TABLE, _GET_TABLE, _DELETE_TABLE = _SUBSYSTEM | 0, _SUBSYSTEM | 1, _SUBSYSTEM | 2
_NEW_CHAIN, _GET_CHAIN = _SUBSYSTEM | 3, _SUBSYSTEM | 4
_NEW_RULE, _GET_RULE = _SUBSYSTEM | 6, _SUBSYSTEM | 7
_NEW_SET = _SUBSYSTEM | 9
_NEW_ELEMENTS, _GET_ELEMENTS, _DELETE_ELEMENTS = _SUBSYSTEM | 12, _SUBSYSTEM | 13, _SUBSYSTEM | 14
_APPEND = 0x800  # NLM_F_APPEND: behind the chain's other rules
_COMMENT = 0  # type of the part of a rule's user data that nft(8) shows as its comment
_LONGEST_COMMENT = 128
_HEADER = struct.Struct("!BBH")  # struct nfgenmsg: family, version, resource
_NUMBER = struct.Struct("!I")

_LIST_ELEM = 1  # NFTA_LIST_ELEM
_DATA_VALUE, _DATA_VERDICT = 1, 2
_EXPR_NAME, _EXPR_DATA = 1, 2
_FIRST_REGISTER = 8  # NFT_REG32_00
_VERDICT_REGISTER = 0
ACCEPT, DROP = 1, 0
_GOTO = -4 & 0xFFFFFFFF  # NFT_GOTO

LINK_LAYER, NETWORK, TRANSPORT = 0, 1, 2  # bases of payload offsets
IIF, OIF, IIFNAME, OIFNAME, NFPROTO, L4PROTO, IIFGROUP, OIFGROUP = 4, 5, 6, 7, 15, 16, 21, 22  # NFT_META_...
INVALID, ESTABLISHED, RELATED, NEW = 1, 2, 4, 8  # bits of the state of a connection
_CONNECTION_STATE, _CONNECTION_STATUS = 0, 2  # NFT_CT_...
_DESTINATION_TRANSLATED = 0x20  # IPS_DST_NAT
_INVERTED = 1  # NFT_LOOKUP_F_INV
_SET_CONCATENATION = 0x80  # NFT_SET_CONCAT
_SET_EVALUATED = 0x20  # NFT_SET_EVAL: rules add elements
_MAX_ELEMENTS = 1000  # of a message: a netlink attribute has at most 64 KiB
_MAX_COUNTED = 1024  # the kernel allocates for all at once: for 65,535 elements it takes 2 MiB
_ADD_ELEMENT = 0  # NFT_DYNSET_OP_ADD
_HOST_BYTE_ORDER, _NETWORK_BYTE_ORDER = (b"\0\4" + struct.pack("=I", each) for each in (1, 2))
"""User data of a set with single keys, for `nft list`."""


Expression = bytes
"""One step of a rule, encoded."""


class Table(NamedTuple):
    """A table of one family."""

    family: int
    name: str

    def __str__(self) -> str:
        return f"{_FAMILIES.get(self.family, self.family)} {self.name}"


class TableInfo(NamedTuple):
    """A table as the kernel reports it; `flags` are 0 but for a dormant one, or one that a program owns."""

    table: Table
    flags: int


class Chain(NamedTuple):
    """A base chain of type `kind`, or one without a `hook`, to which rules go (`go_to`)."""

    name: str
    hook: int | None = None
    priority: int = 0
    policy: int = ACCEPT
    kind: str = "filter"


class Rule(NamedTuple):
    """A rule as the kernel reports it; `packets` is the sum of its counters."""

    chain: str
    comment: str
    packets: int


class KeyField(NamedTuple):
    """A part of a set's key: its type as nft(8) numbers it, for `nft list`, and its length in bytes."""

    kind: int
    length: int


INTERFACE, MAC, IPV4, IPV6, GROUP = KeyField(20, 4), KeyField(9, 6), KeyField(7, 4), KeyField(8, 16), KeyField(35, 4)
_TYPE_BITS = 6  # of each field in the number of a concatenated type


def new_table(table: Table) -> NetlinkRequest:
    """Requests a table; one that exists stays."""
    return _request(table, _NEW_TABLE, CREATE, what=f"create table {table.name}")


def new_exclusive_table(table: Table) -> NetlinkRequest:
    """Requests a table; EEXIST if it exists."""
    return _request(table, _NEW_TABLE, CREATE | EXCLUSIVE, what=f"create table {table.name}")


def get_table(table: Table) -> NetlinkRequest:
    """Requests a table; ENOENT if there is none."""
    return _request(table, _GET_TABLE, 0, what=f"find table {table.name}")


def delete_table(table: Table) -> NetlinkRequest:
    """Requests to delete a table and everything in it."""
    return _request(table, _DELETE_TABLE, 0, what=f"delete table {table.name}")


def dump_tables() -> NetlinkRequest:
    """Requests the tables of all families; `parse_table` reads the answers."""
    return NetlinkRequest(_GET_TABLE, DUMP, _HEADER.pack(0, 0, 0), "read tables")


def parse_table(body: bytes) -> TableInfo:
    """Parses the answer to `get_table`, or one to `dump_tables`."""
    values = attributes(body[_HEADER.size :])
    return TableInfo(Table(body[0], _parsed_text(values[1])), _parsed_number(values.get(2, b"")))


def new_chain(table: Table, chain: Chain) -> NetlinkRequest:
    """Requests a chain."""
    what, body = f"create chain {chain.name}", [_text(3, chain.name)]
    if chain.hook is not None:
        where = nested(4, _number(1, chain.hook), _number(2, chain.priority & 0xFFFFFFFF))
        body += [where, _number(5, chain.policy), _text(7, chain.kind)]
        what += f" of type {chain.kind}"
    return _request(table, _NEW_CHAIN, CREATE, *body, what=what)


def dump_chains(table: Table) -> NetlinkRequest:
    """Requests the chains of all tables of a family, one answer each; `parse_chain` reads them."""
    return _request(table, _GET_CHAIN, DUMP, what=f"read the chains of table {table.name}")


def parse_chain(body: bytes) -> tuple[str, Chain]:
    """Parses one answer to `dump_chains`: returns the name of the table, and the chain."""
    values = attributes(body[_HEADER.size :])
    table, name = _parsed_text(values[1]), _parsed_text(values[3])
    if 4 not in values:
        return table, Chain(name)
    where = attributes(values[4])
    priority = int.from_bytes(where[2], "big", signed=True)
    policy = _parsed_number(values.get(5, b""))
    return table, Chain(name, _parsed_number(where[1]), priority, policy, _parsed_text(values[7]))


def new_set(table: Table, name: str, key: Sequence[KeyField], identifier: int) -> NetlinkRequest:
    """Requests a set whose elements are single fields, or concatenations of several.

    `identifier` is unique in the transaction.
    """
    kind = 0
    for field in key:
        kind = kind << _TYPE_BITS | field.kind
    body = [_text(2, name), _number(3, _SET_CONCATENATION if len(key) > 1 else 0), _number(4, kind)]
    body.append(_number(5, sum(padded(field.length) for field in key)))
    if len(key) == 1:
        body.append(attribute(13, _HOST_BYTE_ORDER if key[0] == INTERFACE else _NETWORK_BYTE_ORDER))
    else:
        body.append(nested(9, nested(2, *(nested(_LIST_ELEM, _number(1, field.length)) for field in key))))
    return _request(table, _NEW_SET, CREATE, *body, _number(10, identifier), what=f"create set {name}")


def new_counting_set(table: Table, name: str, key: KeyField, identifier: int) -> NetlinkRequest:
    """Requests a set of at most 1,024 elements, to which `count_by` adds; what does not fit is not counted."""
    body = (_text(2, name), _number(3, _SET_EVALUATED), _number(4, key.kind), _number(5, padded(key.length)))
    limit = nested(9, _number(1, _MAX_COUNTED))
    order = attribute(13, _HOST_BYTE_ORDER)
    return _request(table, _NEW_SET, CREATE, *body, limit, order, _number(10, identifier), what=f"create set {name}")


def new_rule(table: Table, chain: str, expressions: Iterable[Expression], comment: str = "") -> NetlinkRequest:
    """Requests a rule behind the chain's other rules; raises ValueError if the comment is too long."""
    body = [_text(2, chain), nested(4, *expressions)]
    if comment:
        text = comment.encode() + b"\0"
        if len(text) > _LONGEST_COMMENT:
            raise ValueError(f"{comment!r} is too long for a comment")
        body.append(attribute(7, bytes((_COMMENT, len(text))) + text))
    what = f"add a rule to chain {chain}" + (f" ({comment})" if comment else "")
    return _request(table, _NEW_RULE, CREATE | _APPEND, *body, what=what)


def add_elements(table: Table, name: str, keys: Sequence[bytes]) -> list[NetlinkRequest]:
    """Requests elements of a set, in as many messages as it takes; those that exist stay."""
    what = f"add elements to set {name}"
    return [_request(table, _NEW_ELEMENTS, CREATE, *each, what=what) for each in _elements(name, keys)]


def delete_elements(table: Table, name: str, keys: Sequence[bytes]) -> list[NetlinkRequest]:
    """Requests to delete elements of a set, in as many messages as it takes; ENOENT if one does not exist."""
    what = f"delete elements of set {name}"
    return [_request(table, _DELETE_ELEMENTS, 0, *each, what=what) for each in _elements(name, keys)]


def dump_elements(table: Table, name: str) -> NetlinkRequest:
    """Requests all elements of a set; `parse_elements` reads the answers."""
    return _request(table, _GET_ELEMENTS, DUMP, _text(2, name), what=f"read set {name}")


def dump_rules(table: Table) -> NetlinkRequest:
    """Requests all rules of a table, one answer each; `parse_rule` reads them."""
    return _request(table, _GET_RULE, DUMP, what=f"read the rules of table {table.name}")


def parse_rule(body: bytes) -> Rule:
    """Parses one answer to `dump_rules`."""
    values = attributes(body[_HEADER.size :])
    data = values.get(7, b"")
    comment = data[2 : 2 + data[1]].rstrip(b"\0") if len(data) > 2 and data[0] == _COMMENT else b""
    expressions = [attributes(each) for each in _list(values.get(4, b""))]
    return Rule(_parsed_text(values[2]), comment.decode(errors="replace"), sum(map(_packets, expressions)))


def parse_elements(body: bytes) -> list[bytes]:
    """Parses one answer to `dump_elements`: returns the keys."""
    elements = attributes(body[_HEADER.size :]).get(3, b"")
    return [attributes(attributes(element)[1])[_DATA_VALUE] for element in _list(elements)]


def counts_by_index(bodies: Iterable[bytes]) -> dict[int, int]:
    """Returns the packets that a counting set of links has, by index; `bodies` are all answers to `dump_elements`."""
    answers = [attributes(body[_HEADER.size :]).get(3, b"") for body in bodies]
    elements = [attributes(each) for answer in answers for each in _list(answer)]
    keys = [struct.unpack("=I", attributes(each[1])[_DATA_VALUE])[0] for each in elements]
    return {index: _packets(attributes(each.get(7, b""))) for index, each in zip(keys, elements, strict=True)}


def index_key(index: int) -> bytes:
    """Returns the key of a link in a set of links."""
    return struct.pack("=I", index)


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


def load_extension_header(kind: int, offset: int, length: int, register: int) -> Expression:
    """Loads bytes of an IPv6 extension header; the rule does not match a packet without one."""
    numbers = (_number(1, _FIRST_REGISTER + register), _number(3, offset), _number(4, length))
    return _expression("exthdr", *numbers, attribute(2, bytes((kind,))))


def mask(register: int, bits: bytes) -> Expression:
    """Clears the bits of a register that are not in `bits`."""
    at = _FIRST_REGISTER + register
    values = (nested(4, attribute(_DATA_VALUE, bits)), nested(5, attribute(_DATA_VALUE, bytes(len(bits)))))
    return _expression("bitwise", _number(1, at), _number(2, at), _number(3, len(bits)), *values)


def equals(register: int, value: bytes) -> Expression:
    """The rule matches only if the register has this value."""
    return _expression("cmp", _number(1, _FIRST_REGISTER + register), _number(2, 0), _value(3, value))


def has_state(states: int) -> tuple[Expression, ...]:
    """The rule matches only if the packet's connection is in one of the states, a sum of INVALID to NEW."""
    return _has_bits(_CONNECTION_STATE, states)


def is_destination_translated() -> tuple[Expression, ...]:
    """The rule matches only if the packet's connection was begun to another address than its destination has."""
    return _has_bits(_CONNECTION_STATUS, _DESTINATION_TRANSLATED)


def _has_bits(key: int, bits: int) -> tuple[Expression, ...]:
    load = _expression("ct", _number(1, _FIRST_REGISTER), _number(2, key))
    # Unlike the numbers of messages, those of registers are of this machine.
    return load, mask(0, struct.pack("=I", bits)), differs(0, bytes(4))


def differs(register: int, value: bytes) -> Expression:
    """The rule matches only if the register has another value."""
    return _expression("cmp", _number(1, _FIRST_REGISTER + register), _number(2, 1), _value(3, value))


def is_element(name: str, register: int = 0) -> Expression:
    """The rule matches only if the set has the key that begins at the register."""
    return _expression("lookup", _text(1, name), _number(2, _FIRST_REGISTER + register))


def is_not_element(name: str, register: int = 0) -> Expression:
    """The rule matches only if the set does not have the key that begins at the register."""
    key = _number(2, _FIRST_REGISTER + register)
    return _expression("lookup", _text(1, name), key, _number(5, _INVERTED))


def masquerade() -> Expression:
    """Translates the source to the address of the link by which the packet leaves."""
    return _expression("masq")


def verdict(code: int) -> Expression:
    """Ends the chain with ACCEPT or DROP."""
    data = nested(2, nested(_DATA_VERDICT, _number(1, code)))
    return _expression("immediate", _number(1, _VERDICT_REGISTER), data)


def go_to(chain: str) -> Expression:
    """Continues in another chain and does not come back; at its end the policy of the base chain applies."""
    data = nested(2, nested(_DATA_VERDICT, _number(1, _GOTO), _text(2, chain)))
    return _expression("immediate", _number(1, _VERDICT_REGISTER), data)


def count() -> Expression:
    """Counts packets and bytes."""
    return _expression("counter")


def count_by(name: str, register: int) -> Expression:
    """Counts packets and bytes in the element of a counting set whose key is in the register; adds it if needed.

    For a key that cannot be added (the set is full, or there is no memory) the rule does not match.
    """
    key = _number(4, _FIRST_REGISTER + register)
    counter = nested(7, _text(_EXPR_NAME, "counter"))
    return _expression("dynset", _text(1, name), _number(3, _ADD_ELEMENT), key, counter)


def _packets(expression: Mapping[int, bytes]) -> int:
    """Returns what an expression has counted, 0 for one that is no counter."""
    if expression.get(_EXPR_NAME) != b"counter\0":
        return 0
    return int.from_bytes(attributes(expression[_EXPR_DATA])[2], "big")


def _request(table: Table, kind: int, flags: int, *body: bytes, what: str) -> NetlinkRequest:
    # The name of the table is attribute 1 of every message.
    return NetlinkRequest(kind, flags, _HEADER.pack(table.family, 0, 0) + _text(1, table.name) + b"".join(body), what)


def _elements(name: str, keys: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yields the attributes of each message."""
    elements = [nested(_LIST_ELEM, nested(1, attribute(_DATA_VALUE, key))) for key in keys]
    for start in range(0, len(elements), _MAX_ELEMENTS):
        yield _text(2, name), nested(3, *elements[start : start + _MAX_ELEMENTS])


def _expression(name: str, *data: bytes) -> Expression:
    return nested(_LIST_ELEM, _text(_EXPR_NAME, name), nested(_EXPR_DATA, *data))


def _value(kind: int, value: bytes) -> bytes:
    return nested(kind, attribute(_DATA_VALUE, value))


def _number(kind: int, value: int) -> bytes:
    return attribute(kind, _NUMBER.pack(value))


def _text(kind: int, value: str) -> bytes:
    return attribute(kind, value.encode() + b"\0")


def _parsed_number(value: bytes) -> int:
    return int.from_bytes(value, "big")


def _parsed_text(value: bytes) -> str:
    return value.rstrip(b"\0").decode(errors="replace")


def _list(data: bytes) -> list[bytes]:
    """Values of attributes that all have the same type."""
    found = []
    position = 0
    while position + 4 <= len(data):
        (length,) = struct.unpack_from("=H", data, position)
        found.append(data[position + 4 : position + length])
        position += padded(max(length, 4))
    return found
