"""Removes links by the names of their host ends; the sandbox end goes with it, and need not be there any more.

A name alone is no proof: a link that bears another alias than ours belongs to somebody else and stays. One without an
alias is ours too: it is what an ADD leaves that was killed between making a link and marking it.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from cni_contrail.link import links
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.links import End
from cni_contrail.link.named_tuple import NamedTuple


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


def delete_links(host: RouteSocket, ends: Sequence[End]) -> None:
    """Deletes links; one that is gone already is no error. Raises KernelError."""
    refusals = host.carry_out([links.delete(end) for end in ends])
    for refusal in refusals.values():
        if refusal.errno != errno.ENODEV:
            raise refusal


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
