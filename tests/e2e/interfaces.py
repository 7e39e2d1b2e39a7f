"""Parser for interfaces and routes in the output of `ip`, both iproute2's and busybox's (used inside containers)."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

Ip = Callable[..., str]
"""Runs `ip ARGUMENTS` in a sandbox and returns its output."""

_INTERFACE = re.compile(r"^\d+: ([^:@]+)(?:@\S+)?: .* mtu (\d+)")
_MAC = re.compile(r"^\s+link/ether (\S+)")
_ADDRESS = re.compile(r"^\s+inet6? (\S+) .*\bscope global\b")
_DEFAULT = re.compile(r"^default via (\S+) dev (\S+)")


class Interface(NamedTuple):
    """An interface of a pod: its MAC, MTU, and addresses as `address/prefix length`."""

    mac: str
    mtu: int
    addresses: frozenset[str]


def interfaces(ip: Ip) -> dict[str, Interface]:
    """All interfaces except the loopback, in order of creation."""
    blocks = re.split(r"^(?=\d+: )", ip("addr"), flags=re.MULTILINE)
    found = dict(_interface(block.splitlines()) for block in blocks if block)
    del found["lo"]
    return found


def default_gateways(ip: Ip) -> dict[str, str]:
    """Interface of each default route, by gateway."""
    lines = (ip("-4", "route") + ip("-6", "route")).splitlines()
    return {gateway: interface for line in lines for gateway, interface in _DEFAULT.findall(line)}


def _interface(lines: list[str]) -> tuple[str, Interface]:
    head = _INTERFACE.match(lines[0])
    assert head is not None, lines
    mac = next(_matches(_MAC, lines), "")
    return head[1], Interface(mac, int(head[2]), frozenset(_matches(_ADDRESS, lines)))


def _matches(pattern: re.Pattern[str], lines: list[str]) -> Iterator[str]:
    return (match[1] for match in map(pattern.match, lines) if match)
