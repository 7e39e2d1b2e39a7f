"""Compares an interface with its plan.

Reads through pyroute2 instead of our own messages, so that it finds mistakes in those. It tolerates what a plugin later
in the chain may do (CNI specification 1.0.0, section 2, CHECK): more addresses and routes; a default route through
another interface; a route moved to another table (`sbr`); a smaller MTU in the sandbox (`tuning`). A changed MAC is a
difference: a caller that knows from the result that a later plugin changed it puts the new one into the plan.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator

from cni_contrail.link.addresses import packed
from cni_contrail.link.errors import KernelError
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.netns import InNetns
from cni_contrail.link.plan import InterfacePlan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_UP = 0x1  # IFF_UP
_DAD_FAILED = 0x08  # IFA_F_DADFAILED
_UNICAST = 1  # RTN_UNICAST
_FAMILIES: dict[int, str] = {socket.AF_INET: "IPv4", socket.AF_INET6: "IPv6"}

# A kernel dump may omit entries while they change. The kernel marks such a dump (NLM_F_DUMP_INTR), but pyroute2 ignores
# the mark; so a difference counts only if every attempt finds one.
_ATTEMPTS = 3


class _Observed(NamedTuple):
    """State of an interface in the kernel; None or empty where nothing exists."""

    host_end: Any
    sandbox_end: Any
    sandbox_id: int  # namespace ID of the sandbox in the host's namespace, negative if it has none
    addresses: list[Any]
    routes: list[Any]


def check_interface(netns_fd: int, plan: InterfacePlan) -> list[str]:
    """Returns one sentence for each difference between the plan and the kernel.

    The calling thread is in the host's network namespace. Raises NetnsError or KernelError.
    """
    differences: list[str] = []
    for _ in range(_ATTEMPTS):
        differences = list(_differences(plan, _observe(netns_fd, plan)))
        if not differences:
            break
    return differences


def _observe(netns_fd: int, plan: InterfacePlan) -> _Observed:
    from pyroute2 import IPRoute, NetlinkError  # takes 0.2 s, so only CHECK imports it

    # A new IPRoute each time: a long-lived one leaks one datagram per "get". `InNetns` instead of pyroute2's `netns`
    # argument, which forks a process.
    try:
        with IPRoute() as kernel:
            host_end = _link(kernel, plan.host_name)
            sandbox_id = int(kernel.get_netnsid(fd=netns_fd)["nsid"])
        with InNetns(netns_fd), IPRoute() as kernel:
            sandbox_end = _link(kernel, plan.name)
            return _Observed(host_end, sandbox_end, sandbox_id, list(kernel.addr("dump")), list(kernel.route("dump")))
    except NetlinkError as error:
        raise KernelError(f"{plan.name}: read the interface", error.code, os.strerror(error.code)) from error


def _link(kernel: Any, name: str) -> Any:
    from pyroute2 import NetlinkError

    try:
        return kernel.link("get", ifname=name)[0]
    except NetlinkError as error:
        if error.code == errno.ENODEV:
            return None
        raise


def _differences(plan: InterfacePlan, observed: _Observed) -> Iterator[str]:
    if observed.host_end is None:
        yield f"The host end {plan.host_name} of {plan.name} does not exist."
    else:
        yield from _host_end(plan, observed.host_end)
    if observed.sandbox_end is None:
        yield f"{plan.name} does not exist in the sandbox."
        return
    yield from _sandbox_end(plan, observed.sandbox_end)
    if observed.host_end is not None and not _paired(observed):
        yield f"{plan.name} and {plan.host_name} are not the two ends of one veth pair."
    yield from _addresses(plan, observed)
    yield from _routes(plan, observed)
    yield from _defaults(plan, observed)


def _host_end(plan: InterfacePlan, link: Any) -> Iterator[str]:
    yield from _either_end(plan.host_name, link)
    alias = link.get("ifalias") or ""
    if alias != plan.alias:
        yield f"{plan.host_name} has the alias {alias!r} instead of {plan.alias!r}."
    if link.get("mtu") != plan.mtu:
        yield f"{plan.host_name} has an MTU of {link.get('mtu')} instead of {plan.mtu}."


def _sandbox_end(plan: InterfacePlan, link: Any) -> Iterator[str]:
    yield from _either_end(plan.name, link)
    if link.get("address") != plan.mac.lower():
        yield f"{plan.name} has the MAC address {link.get('address')} instead of {plan.mac.lower()}."
    if link.get("mtu") > plan.mtu:
        yield f"{plan.name} has an MTU of {link.get('mtu')}, more than {plan.mtu}."


def _either_end(name: str, link: Any) -> Iterator[str]:
    kind = link.get(("linkinfo", "kind"))
    if kind != "veth":
        yield f"{name} is a link of kind {kind} instead of veth."
    if not link["flags"] & _UP:
        yield f"{name} is down."


def _paired(observed: _Observed) -> bool:
    host_end, sandbox_end = observed.host_end, observed.sandbox_end
    actual = (host_end.get("link"), sandbox_end.get("link"), host_end.get("link_netnsid"))
    return bool(actual == (sandbox_end["index"], host_end["index"], observed.sandbox_id))


def _addresses(plan: InterfacePlan, observed: _Observed) -> Iterator[str]:
    present = {
        (_packed(message.get("local") or message.get("address")), message["prefixlen"]): message["flags"]
        for message in observed.addresses
        if message["index"] == observed.sandbox_end["index"]
    }
    for address in plan.addresses:
        flags = present.get((_packed(address.address), address.prefix_length))
        if flags is None:
            yield f"{plan.name} does not have the address {address.address}/{address.prefix_length}."
        elif flags & _DAD_FAILED:
            yield f"{plan.name} cannot use {address.address}: another host has it (duplicate address detection)."


def _routes(plan: InterfacePlan, observed: _Observed) -> Iterator[str]:
    present = {
        (_packed(route.get("dst")), route["dst_len"], _packed(route.get("gateway")))
        for route in observed.routes
        if route.get("oif") == observed.sandbox_end["index"]
    }
    for wanted in plan.routes:
        network, _, length = wanted.destination.partition("/")
        if (_packed(network), int(length), _packed(wanted.gateway)) not in present:
            via = f" via {wanted.gateway}" if wanted.gateway else ""
            yield f"{plan.name} does not have the route to {wanted.destination}{via}."


def _defaults(plan: InterfacePlan, observed: _Observed) -> Iterator[str]:
    """Accepts any default route of the family: another plugin may have added one before or after."""
    present = {route["family"] for route in observed.routes if route["dst_len"] == 0 and route["type"] == _UNICAST}
    for default in plan.defaults:
        family, _ = packed(default.gateway)
        if family not in present:
            yield f"The sandbox has no {_FAMILIES[family]} default route, through {plan.name} or any other interface."


def _packed(address: str | None) -> bytes | None:
    return None if address is None else packed(address)[1]
