"""Brings the filter of tunnel packets to its desired state: first accepts new nodes, at the end no stale ones."""

from __future__ import annotations

import errno
import socket

from cni_contrail.datapath import nftables_messages as nft
from cni_contrail.datapath import tunnel_rules
from cni_contrail.datapath.missing_modules import commit, open_filters
from cni_contrail.datapath.nftables_socket import NftablesSocket
from cni_contrail.datapath.nftables_tables import TableState, read_table
from cni_contrail.link.errors import KernelError
from cni_contrail.link.message import NetlinkRequest
from cni_contrail.link.named_tuple import NamedTuple


class TunnelFilterState(NamedTuple):
    """The table if there is one, and the addresses that are accepted. `dropped` is since the table was made."""

    table: TableState | None
    nodes: frozenset[str]
    dropped: int


class TunnelFilterOutcome(NamedTuple):
    """Number of changes, packets that were dropped since the table was made, and addresses that are still accepted."""

    changes: int
    dropped: int
    stale: frozenset[str]


class FilterPlan(NamedTuple):
    """Requests of one transaction, and the number of changes that they are. `stale` addresses are still accepted."""

    requests: list[NetlinkRequest]
    changes: int
    stale: frozenset[str]


def plan_filter(state: TunnelFilterState, nodes: frozenset[str], port: int) -> FilterPlan:
    """Returns the changes after which tunnel packets from these addresses are accepted. Pure.

    Addresses that are accepted stay so, also in a table that is replaced since it is not whole.
    """
    missing, stale = nodes - state.nodes, state.nodes - nodes
    if state.table is not None and state.table.is_whole(tunnel_rules.CHAINS, tunnel_rules.rules(port)):
        return FilterPlan(tunnel_rules.add_nodes(missing), len(missing), stale)
    replaced = [*tunnel_rules.replace_table(port), *tunnel_rules.add_nodes(nodes | state.nodes)]
    return FilterPlan(replaced, len(missing) + 1, stale)


def accept_nodes(nodes: frozenset[str], port: int) -> TunnelFilterOutcome:
    """Makes the filter if it is not whole, and lets it accept tunnel packets from these addresses.

    The calling thread is in the node's namespace. Raises KernelError or MissingModuleError, each a LinkError.
    """
    with open_filters() as filters:
        state = read_filter(filters)
        plan = plan_filter(state, nodes, port)
        commit(filters, plan.requests, tunnel_rules.MODULES)
    return TunnelFilterOutcome(plan.changes, state.dropped, plan.stale)


def forget_nodes(stale: frozenset[str]) -> int:
    """Accepts no more tunnel packets from addresses that are accepted; returns the number of changes.

    Raises KernelError.
    """
    if stale:
        with open_filters() as filters:
            filters.commit(tunnel_rules.remove_nodes(stale))
    return len(stale)


def remove_filter() -> bool:
    """Removes the filter; returns whether there was one. Raises KernelError."""
    with open_filters() as filters:
        (table,) = filters.get([nft.get_table(tunnel_rules.TABLE)])
        if isinstance(table, KernelError):
            if table.errno != errno.ENOENT:
                raise table
            return False
        filters.commit([nft.delete_table(tunnel_rules.TABLE)])
    return True


def read_filter(filters: NftablesSocket) -> TunnelFilterState:
    """Reads the filter; raises KernelError."""
    try:
        table = read_table(filters, tunnel_rules.TABLE)
        keys = [
            key
            for name in tunnel_rules.SETS
            for body in filters.dump(nft.dump_elements(tunnel_rules.TABLE, name))
            for key in nft.parse_elements(body)
        ]
    except KernelError as error:
        if error.errno != errno.ENOENT:
            raise
        return TunnelFilterState(None, frozenset(), 0)
    rules = () if table is None else table.rules
    dropped = sum(rule.packets for rule in rules if rule.comment.startswith(tunnel_rules.COUNTED))
    return TunnelFilterState(table, frozenset(_text(key) for key in keys), dropped)


def _text(address: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET6 if len(address) == 16 else socket.AF_INET, address)
