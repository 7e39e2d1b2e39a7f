"""Removes links by the names of their host ends; the sandbox end is removed with it, and the sandbox may be gone.

A name alone proves no ownership: a link with an alias other than ours belongs to somebody else and stays. One without
an alias is ours too: an ADD leaves it if it is killed between creating a link and setting its alias.

Each link deletion waits for an RCU grace period, 10 to 30 ms; several links are deleted with one wait as a link group.
A group is only a number in each link, and deleting it deletes every link with that number, whoever owns it. Therefore:

- The number is derived from the index of one of the links, far above the numbers that people choose: no two processes
  use the same one at a time.
- After our links have joined the group, all links of the host are read. The group is deleted only if all its members
  are ours; otherwise the links are deleted one by one.

Not promised: that a link survives which somebody moves to this very group in the microseconds in between.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from contextlib import ExitStack

from cni_contrail.link import links
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket, open_route_socket
from cni_contrail.link.host_side import DIRECTORY, network_namespaces, open_host_side
from cni_contrail.link.links import LinkInfo, LinkRef
from cni_contrail.link.lookup import index_of
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.netns_ids import get_netns_id, parse_netns_id

_GROUPS = 0x40000000  # group numbers are signed 32-bit numbers, and link indexes are small


class HostLink(NamedTuple):
    """A host end, its alias if it is ours, and the namespace of its network (empty: it is in the host's)."""

    host_name: str
    alias: str
    namespace: str = ""


class _Found(NamedTuple):
    """Our host ends that exist in one namespace, and the ID by which it knows the sandbox, negative if none."""

    host: RouteSocket
    ours: list[LinkInfo]
    sandbox_id: int


def remove_links(wanted: Sequence[HostLink], *, netns_dir: str = DIRECTORY, sandbox: int | None = None) -> list[str]:
    """Removes those links that exist and are ours; returns the names of those that belong to somebody else.

    The calling thread is in the host's network namespace. Links in several namespaces are deleted together at their
    other ends, if `sandbox` is a descriptor of the namespace of these. Raises LinkError.
    """
    foreign: list[str] = []
    with ExitStack() as stack:
        found = []
        for namespace in dict.fromkeys(link.namespace for link in wanted):
            host = open_host_side(namespace, netns_dir)
            if host is not None:
                stack.enter_context(host)
                group = [link for link in wanted if link.namespace == namespace]
                ours, others = _split_by_owner(host, group)
                foreign += others
                found.append(_Found(host, ours, _sandbox_id(host, sandbox)))
        deleted = _delete_other_ends(sandbox, found) if sandbox is not None and len(found) > 1 else frozenset()
        for host, ours, _ in found:
            delete_links(host, [LinkRef(link.name, link.ifindex) for link in ours if link.name not in deleted])
    return foreign


def _sandbox_id(host: RouteSocket, sandbox: int | None) -> int:
    return -1 if sandbox is None else parse_netns_id(host.execute_all_and_get([], get_netns_id(sandbox)))


def _delete_other_ends(sandbox: int, found: Sequence[_Found]) -> frozenset[str]:
    """Deletes the links at their ends in the sandbox, with one RCU wait; returns the names of the deleted host ends."""
    wanted = {
        (link.peer_index, link.ifindex): link.name
        for each in found
        for link in each.ours
        if each.sandbox_id >= 0 and link.peer_netns_id == each.sandbox_id
    }
    with open_route_socket(sandbox) as kernel:
        ends = [links.parse_link(body) for body in kernel.dump(links.dump())]
        ours = [end for end in ends if (end.ifindex, end.peer_index) in wanted]
        delete_links(kernel, [LinkRef(end.name, end.ifindex) for end in ours])
    return frozenset(wanted[end.ifindex, end.peer_index] for end in ours)


def links_by_alias_prefix(prefix: str, *, netns_dir: str = DIRECTORY) -> list[HostLink]:
    """Returns the links whose aliases start with the prefix, in all namespaces; raises LinkError."""
    encoded = prefix.encode()
    found = []
    for namespace in ("", *network_namespaces(netns_dir)):
        host = open_host_side(namespace, netns_dir)
        if host is not None:
            with host:
                # Searching the raw bytes first saves parsing every link of the node.
                candidates = [links.parse_link(body) for body in host.dump(links.dump()) if encoded in body]
            ours = [link for link in candidates if link.alias.startswith(prefix)]
            found += [HostLink(link.name, link.alias, namespace) for link in ours]
    return found


def any_exists(wanted: Sequence[HostLink], *, netns_dir: str = DIRECTORY) -> bool:
    """Returns whether there is a link of any of these names; raises LinkError."""
    for namespace in dict.fromkeys(link.namespace for link in wanted):
        host = open_host_side(namespace, netns_dir)
        if host is not None:
            with host:
                if any(index_of(host, link.host_name) is not None for link in wanted if link.namespace == namespace):
                    return True
    return False


def delete_links(host: RouteSocket, ends: Sequence[LinkRef]) -> None:
    """Deletes links; one that is already gone is not an error. Raises KernelError."""
    deleted = _delete_as_group(host, ends) if len(ends) > 1 else frozenset()
    errors = host.execute([links.delete(end) for end in ends if end.ifindex not in deleted])
    for error in errors.values():
        if error.errno != errno.ENODEV:
            raise error


def _delete_as_group(host: RouteSocket, ends: Sequence[LinkRef]) -> frozenset[int]:
    """Returns the indexes of the deleted links, empty if the group could not be deleted; raises KernelError."""
    group = _GROUPS | ends[0].ifindex
    host.execute([links.set_group(end, group) for end in ends])  # a link that is already gone does not matter
    try:
        members = _group_members(host, group)
    except KernelError:  # links change too fast for a consistent dump
        return frozenset()
    if not members or not members <= {end.ifindex for end in ends}:
        return frozenset()
    errors = host.execute([links.delete_group(group)])
    return frozenset() if errors else members


def _group_members(host: RouteSocket, group: int) -> frozenset[int]:
    encoded = links.packed_group(group)
    candidates = [links.parse_link(body) for body in host.dump(links.dump()) if encoded in body]
    return frozenset(link.ifindex for link in candidates if link.group == group)


def _split_by_owner(host: RouteSocket, wanted: Sequence[HostLink]) -> tuple[list[LinkInfo], list[str]]:
    ours, foreign = [], []
    answers = host.get([links.get(link.host_name) for link in wanted])
    for link, answer in zip(wanted, answers, strict=True):
        if isinstance(answer, KernelError):
            if answer.errno != errno.ENODEV:
                raise answer
            continue
        info = links.parse_link(answer)
        if info.alias in ("", link.alias):
            ours.append(info)
        else:
            foreign.append(link.host_name)
    return ours, foreign
