"""Findings of a check: what is wrong, where, and what to do; and their output."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

import msgspec

from contrailctl.output import Output
from contrailctl.table import counted, format_table

EXIT_FOUND = 1


class Fault(StrEnum):
    """What is wrong with an object; the first three have the names of `cni_contrail.inspection.difference`."""

    MISSING = "missing"
    STALE = "stale"
    WRONG = "wrong"
    REFUSED = "refused"
    LOST = "lost"
    SILENT = "silent"
    BLOCKED = "blocked"
    STOPPED = "stopped"
    PROBLEM = "problem"
    UNREADY = "unready"
    UNREACHED = "unreached"
    LEAK = "leak"
    UNCHECKED = "unchecked"


class Finding(msgspec.Struct, frozen=True, order=True):
    """Something that is not as it should be. `node` and `network` are empty for what concerns none in particular.

    `found` says how the object is, where that is known; `advice` what to do. `peer` is the tunnel address of the other
    node that it concerns.
    """

    node: str
    network: str
    fault: Fault
    what: str
    found: str = ""
    advice: str = ""
    peer: str = ""


class Checked(msgspec.Struct, frozen=True):
    """Result of a check: how much was checked, what was found, and what was left out.

    `probes` is the number of those that temporary pods have made.
    """

    nodes: tuple[str, ...]
    networks: int
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    probes: int = 0


def output_of(checked: Checked) -> Output:
    """Returns the output; the exit status is 1 if something was found."""
    status = EXIT_FOUND if checked.findings else 0
    return Output("\n".join(_lines(checked)), checked, status)


def _lines(checked: Checked) -> Iterator[str]:
    findings = sorted(checked.findings)
    if findings:
        yield _table(findings)
        yield ""
        yield from _advice(findings)
        yield ""
    for note in checked.notes:
        yield f"Not checked: {note}"
    probes = f", {counted(checked.probes, 'probe')} of temporary pods" if checked.probes else ""
    yield (
        f"{counted(len(checked.nodes), 'node')}, {counted(checked.networks, 'network')}{probes}: "
        f"{counted(len(findings), 'problem') if findings else 'no problem found'}"
    )


def _table(findings: Sequence[Finding]) -> str:
    rows = [(each.node, each.network, each.fault, _object(each)) for each in findings]
    return format_table(("NODE", "NETWORK", "FAULT", "OBJECT"), rows)


def _object(finding: Finding) -> str:
    return f"{finding.what} (found: {finding.found})" if finding.found else finding.what


def _advice(findings: Iterable[Finding]) -> Iterator[str]:
    faults = defaultdict[str, dict[str, None]](dict)
    for each in findings:
        if each.advice:
            faults[each.advice].setdefault(each.fault)
    yield from (f"{', '.join(found)}: {advice}" for advice, found in faults.items())
