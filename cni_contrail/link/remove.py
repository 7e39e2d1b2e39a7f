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

from cni_contrail.link import links
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.links import LinkRef
from cni_contrail.link.named_tuple import NamedTuple

_GROUPS = 0x40000000  # group numbers are signed 32-bit numbers, and link indexes are small


class HostLink(NamedTuple):
    """A host end to remove, and the alias that it has if it is ours."""

    host_name: str
    alias: str


def remove_links(wanted: Sequence[HostLink]) -> list[str]:
    """Removes those links that exist and are ours; returns the names of those that belong to somebody else.

    The calling thread is in the host's network namespace. Raises KernelError.
    """
    with RouteSocket() as host:
        ours, foreign = _split_by_owner(host, wanted)
        delete_links(host, ours)
    return foreign


def links_by_alias_prefix(prefix: str) -> list[HostLink]:
    """Returns the links whose aliases start with the prefix; raises KernelError."""
    encoded = prefix.encode()
    with RouteSocket() as host:
        # Searching the raw bytes first saves parsing every link of the node.
        candidates = [links.parse_link(body) for body in host.dump(links.dump()) if encoded in body]
    return [HostLink(link.name, link.alias) for link in candidates if link.alias.startswith(prefix)]


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


def _split_by_owner(host: RouteSocket, wanted: Sequence[HostLink]) -> tuple[list[LinkRef], list[str]]:
    ours, foreign = [], []
    answers = host.get([links.get(link.host_name) for link in wanted])
    for link, answer in zip(wanted, answers, strict=True):
        if isinstance(answer, KernelError):
            if answer.errno != errno.ENODEV:
                raise answer
            continue
        info = links.parse_link(answer)
        if info.alias in ("", link.alias):
            ours.append(LinkRef(link.host_name, info.ifindex))
        else:
            foreign.append(link.host_name)
    return ours, foreign
