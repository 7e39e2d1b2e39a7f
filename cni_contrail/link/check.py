"""Compares an interface with its plan.

Reads through pyroute2 and not through our own messages, so that a mistake in those would be found. Tolerated is what a
plugin later in the chain may do (CNI specification 1.0.0, section 2, CHECK): more addresses and routes; a default
route through another interface; a route moved to another table (`sbr`); a smaller MTU in the sandbox (`tuning`). A
changed MAC is a difference: who knows that a later plugin changed it, from the result, puts that one into the plan.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator

from cni_contrail.link.addresses import packed
from cni_contrail.link.errors import KernelError
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.netns import Inside
from cni_contrail.link.plan import InterfacePlan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_UP = 0x1  # IFF_UP
_DAD_FAILED = 0x08  # IFA_F_DADFAILED
_UNICAST = 1  # RTN_UNICAST
_FAMILIES: dict[int, str] = {socket.AF_INET: "IPv4", socket.AF_INET6: "IPv6"}

# The kernel may leave entries out of what it lists while it changes. It says so (NLM_F_DUMP_INTR), but pyroute2 does
# not; so a difference is believed when it is seen each time.
_ATTEMPTS = 3


class _Seen(NamedTuple):
    """What the kernel has of an interface; None or empty where there is nothing."""

    host_end: Any
    sandbox_end: Any
    sandbox_id: int  # what the host's namespace calls the sandbox, negative if nothing
    addresses: list[Any]
    routes: list[Any]


def check_interface(netns_fd: int, plan: InterfacePlan) -> list[str]:
    """Returns one sentence for each difference between the plan and the kernel.

    The calling thread is in the host's network namespace. Raises NetnsError or KernelError if it cannot be read.
    """
    differences: list[str] = []
    for _ in range(_ATTEMPTS):
        differences = list(_differences(plan, _look(netns_fd, plan)))
        if not differences:
            break
    return differences


def _look(netns_fd: int, plan: InterfacePlan) -> _Seen:
    from pyroute2 import IPRoute, NetlinkError  # 0.2 s, so only here

    # A fresh IPRoute each time: a long-lived one keeps one datagram for each "get". The namespace is entered here and
    # not by its own netns argument, which forks.
    try:
        with IPRoute() as kernel:
            host_end = _link(kernel, plan.host_name)
            sandbox_id = int(kernel.get_netnsid(fd=netns_fd)["nsid"])
        with Inside(netns_fd), IPRoute() as kernel:
            sandbox_end = _link(kernel, plan.name)
            return _Seen(host_end, sandbox_end, sandbox_id, list(kernel.addr("dump")), list(kernel.route("dump")))
    except NetlinkError as error:
        raise KernelError(f"{plan.name}: read it", error.code, os.strerror(error.code)) from error


def _link(kernel: Any, name: str) -> Any:
    from pyroute2 import NetlinkError

    try:
        return kernel.link("get", ifname=name)[0]
    except NetlinkError as error:
        if error.code == errno.ENODEV:
            return None
        raise


def _differences(plan: InterfacePlan, seen: _Seen) -> Iterator[str]:
    if seen.host_end is None:
        yield f"The host end {plan.host_name} of {plan.name} does not exist."
    else:
        yield from _host_end(plan, seen.host_end)
    if seen.sandbox_end is None:
        yield f"{plan.name} does not exist in the sandbox."
        return
    yield from _sandbox_end(plan, seen.sandbox_end)
    if seen.host_end is not None and not _paired(seen):
        yield f"{plan.name} and {plan.host_name} are not the two ends of one pair."
    yield from _addresses(plan, seen)
    yield from _routes(plan, seen)
    yield from _defaults(plan, seen)


def _host_end(plan: InterfacePlan, link: Any) -> Iterator[str]:
    yield from _either_end(plan.host_name, link)
    alias = link.get("ifalias") or ""
    if alias != plan.alias:
        yield f"{plan.host_name} has the alias {alias!r} and not {plan.alias!r}."
    if link.get("mtu") != plan.mtu:
        yield f"{plan.host_name} has an MTU of {link.get('mtu')} and not {plan.mtu}."


def _sandbox_end(plan: InterfacePlan, link: Any) -> Iterator[str]:
    yield from _either_end(plan.name, link)
    if link.get("address") != plan.mac.lower():
        yield f"{plan.name} has the MAC address {link.get('address')} and not {plan.mac.lower()}."
    if link.get("mtu") > plan.mtu:
        yield f"{plan.name} has an MTU of {link.get('mtu')}, more than {plan.mtu}."


def _either_end(name: str, link: Any) -> Iterator[str]:
    kind = link.get(("linkinfo", "kind"))
    if kind != "veth":
        yield f"{name} is a link of kind {kind} and not veth."
    if not link["flags"] & _UP:
        yield f"{name} is down."


def _paired(seen: _Seen) -> bool:
    host_end, sandbox_end = seen.host_end, seen.sandbox_end
    said = (host_end.get("link"), sandbox_end.get("link"), host_end.get("link_netnsid"))
    return bool(said == (sandbox_end["index"], host_end["index"], seen.sandbox_id))


def _addresses(plan: InterfacePlan, seen: _Seen) -> Iterator[str]:
    present = {
        (_packed(message.get("local") or message.get("address")), message["prefixlen"]): message["flags"]
        for message in seen.addresses
        if message["index"] == seen.sandbox_end["index"]
    }
    for address in plan.addresses:
        flags = present.get((_packed(address.address), address.prefix_length))
        if flags is None:
            yield f"{plan.name} does not have the address {address.address}/{address.prefix_length}."
        elif flags & _DAD_FAILED:
            yield f"{plan.name} may not use {address.address}: another host has it (duplicate address detection)."


def _routes(plan: InterfacePlan, seen: _Seen) -> Iterator[str]:
    present = {
        (_packed(route.get("dst")), route["dst_len"], _packed(route.get("gateway")))
        for route in seen.routes
        if route.get("oif") == seen.sandbox_end["index"]
    }
    for wanted in plan.routes:
        network, _, length = wanted.destination.partition("/")
        if (_packed(network), int(length), _packed(wanted.gateway)) not in present:
            by_way = f" by way of {wanted.gateway}" if wanted.gateway else ""
            yield f"{plan.name} does not have the route to {wanted.destination}{by_way}."


def _defaults(plan: InterfacePlan, seen: _Seen) -> Iterator[str]:
    """Any default route of the family will do: another plugin's may have been there, or have taken over."""
    present = {route["family"] for route in seen.routes if route["dst_len"] == 0 and route["type"] == _UNICAST}
    for default in plan.defaults:
        family, _ = packed(default.gateway)
        if family not in present:
            yield f"The sandbox has no {_FAMILIES[family]} default route, neither by {plan.name} nor otherwise."


def _packed(address: str | None) -> bytes | None:
    return None if address is None else packed(address)[1]
