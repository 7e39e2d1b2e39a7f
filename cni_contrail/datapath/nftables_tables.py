"""nf_tables tables as the kernel has them, to be compared with what they should be.

A table is whole if it has its rules in their order, its chains with their hooks, priorities and policies, no others,
and no flags: a `dormant` one filters nothing.
"""

from __future__ import annotations

import errno
import operator
from collections.abc import Collection, Iterable, Sequence

from cni_contrail.datapath import nftables_messages as nft
from cni_contrail.datapath.nftables_messages import Chain, Rule, Table
from cni_contrail.datapath.nftables_socket import NftablesSocket
from cni_contrail.datapath.rule_texts import RuleText
from cni_contrail.link.errors import KernelError
from cni_contrail.link.named_tuple import NamedTuple

_by_chain = operator.itemgetter(0)  # the kernel reports the chains in the order of their creation


class TableState(NamedTuple):
    """A table that exists."""

    flags: int
    chains: frozenset[Chain]
    rules: tuple[Rule, ...]

    def is_whole(self, chains: Collection[Chain], rules: Sequence[RuleText]) -> bool:
        """Returns whether the table is as it was made with these chains and rules."""
        if self.flags or self.chains != frozenset(chains):
            return False
        found = [(rule.chain, rule.comment) for rule in self.rules]
        wanted = [(rule.chain, rule.comment) for rule in rules]
        return sorted(found, key=_by_chain) == sorted(wanted, key=_by_chain)


def read_table(filters: NftablesSocket, table: Table) -> TableState | None:
    """Returns a table, None if there is none; raises KernelError."""
    (answer,) = filters.get([nft.get_table(table)])
    try:
        if isinstance(answer, KernelError):
            raise answer
        rules = [nft.parse_rule(body) for body in filters.dump(nft.dump_rules(table))]
        chains = [nft.parse_chain(body) for body in filters.dump(nft.dump_chains(table))]
    except KernelError as error:
        if error.errno != errno.ENOENT:
            raise
        return None
    ours = frozenset(chain for name, chain in chains if name == table.name)  # the kernel reports those of all tables
    return TableState(nft.parse_table(answer).flags, ours, tuple(rules))


def other_tables(filters: NftablesSocket, ours: Collection[Table]) -> list[Table]:
    """Returns the tables of all families in the namespace but ours; raises KernelError."""
    found = (nft.parse_table(body).table for body in filters.dump(nft.dump_tables()))
    return [table for table in found if table not in ours]


def remove_tables(filters: NftablesSocket, tables: Iterable[Table]) -> tuple[list[Table], str | None]:
    """Removes tables of other programs, each on its own.

    Returns those that are removed, and what prevents the rest: a program may own a table as long as it runs.
    """
    removed, problem = [], None
    for table in tables:
        try:
            filters.commit([nft.delete_table(table)])
        except KernelError as error:
            if error.errno != errno.ENOENT:
                problem = f"table {table} of another program filters packets of pods: {error}"
        else:
            removed.append(table)
    return removed, problem
