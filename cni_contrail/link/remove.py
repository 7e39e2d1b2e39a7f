"""Removes links by the names of their host ends; the sandbox end goes with it, and need not be there any more.

A name alone is no proof: a link that bears another alias than ours belongs to somebody else and stays. One without an
alias is ours too: it is what an ADD leaves that was killed between making a link and marking it.

Each deletion of a link waits for an RCU grace period, 10 to 30 ms; several links are deleted with one wait as a group.
A group is no more than a number that links bear, and its deletion takes every link that bears it, whoever's it is. So:

- The number is the index of one of the links, and far above those that people give to groups: no two processes choose
  the same one at a time.
- When our links bear it, all links of the host are read, and the group is deleted only if none but ours bears it; else
  the links are deleted one by one.

Not promised: that a link lives to which somebody gives this very number in the microseconds between.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from cni_contrail.link import links
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.links import End
from cni_contrail.link.named_tuple import NamedTuple

_GROUPS = 0x40000000  # group numbers are signed 32-bit numbers, and indexes of links small ones


class HostLink(NamedTuple):
    """A host end to remove, and the alias that it bears if it is ours."""

    host_name: str
    alias: str


def remove_links(wanted: Sequence[HostLink]) -> list[str]:
    """Removes those of the links that are there and ours; returns the names of those that are somebody else's.

    The calling thread is in the host's network namespace. Raises KernelError.
    """
    with RouteSocket() as host:
        ours, foreign = _sort(host, wanted)
        delete_links(host, ours)
    return foreign


def marked_links(mark: str) -> list[HostLink]:
    """Returns the links whose aliases begin with the mark; raises KernelError."""
    encoded = mark.encode()
    with RouteSocket() as host:
        likely = [links.found(body) for body in host.dump(links.dump()) if encoded in body]
    return [HostLink(link.name, link.alias) for link in likely if link.alias.startswith(mark)]


def delete_links(host: RouteSocket, ends: Sequence[End]) -> None:
    """Deletes links; one that is gone already is no error. Raises KernelError."""
    deleted = _delete_as_group(host, ends) if len(ends) > 1 else frozenset()
    refusals = host.carry_out([links.delete(end) for end in ends if end.ifindex not in deleted])
    for refusal in refusals.values():
        if refusal.errno != errno.ENODEV:
            raise refusal


def _delete_as_group(host: RouteSocket, ends: Sequence[End]) -> frozenset[int]:
    """Returns the indexes of the links that it could delete; raises KernelError."""
    group = _GROUPS | ends[0].ifindex
    host.carry_out([links.set_group(end, group) for end in ends])
    try:
        bearers = _bearers(host, group)
    except KernelError:  # too much changes at the moment for all links to be read
        return frozenset()
    if not bearers or not bearers <= {end.ifindex for end in ends}:
        return frozenset()
    refused = host.carry_out([links.delete_group(group)])
    return frozenset() if refused else bearers


def _bearers(host: RouteSocket, group: int) -> frozenset[int]:
    encoded = links.packed_group(group)
    likely = [links.found(body) for body in host.dump(links.dump()) if encoded in body]
    return frozenset(link.ifindex for link in likely if link.group == group)


def _sort(host: RouteSocket, wanted: Sequence[HostLink]) -> tuple[list[End], list[str]]:
    ours, foreign = [], []
    answers = host.get([links.get(link.host_name) for link in wanted])
    for link, answer in zip(wanted, answers, strict=True):
        if isinstance(answer, KernelError):
            if answer.errno != errno.ENODEV:
                raise answer
            continue
        found = links.found(answer)
        if found.alias in ("", link.alias):
            ours.append(End(link.host_name, found.ifindex))
        else:
            foreign.append(link.host_name)
    return ours, foreign
