"""Matrix of echo requests among the pods: who shares a network must reach each other there, others must not meet."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from contrail_config.objects import InterfaceAddress, VirtualMachineInterface
from contrailctl.table import format_table
from demo.container_runtime import PodSandbox
from demo.echo import reaches

_POSITIVE_TIMEOUT = 5.0  # seconds; an answer takes less than 1 ms
_NEGATIVE_TIMEOUT = 1.0
_CONCURRENT = 64
_LEGEND = "3 +1: 3 addresses of the target answer, in networks that both have; 1 in another network rightly does not"


class Cell(NamedTuple):
    """An echo request from a pod to an address of another one, which it must reach or must not.

    `source_address` is that of the pod in the network that both have. Subnets of its networks may overlap, and the
    source says which of them is meant.
    """

    source: PodSandbox
    target: PodSandbox
    network: str
    address: str
    must_reach: bool
    source_address: str | None = None


class Answer(NamedTuple):
    """A cell, and whether it was answered."""

    cell: Cell
    is_answered: bool


def cells(sandboxes: Sequence[PodSandbox]) -> Iterator[Cell]:
    """Yields a cell for each address of each pod, as seen from each other pod.

    Left out are addresses that must not be reached but exist in a network of the source, too: their owner would answer.
    """
    owned = {
        (interface.network_uuid, each.address)
        for sandbox in sandboxes
        for interface in _interfaces(sandbox)
        for each in interface.addresses
    }
    for source in sandboxes:
        networks = {interface.network_uuid: interface for interface in reversed(_interfaces(source))}
        for target in (each for each in sandboxes if each is not source):
            for interface in _interfaces(target):
                shared = networks.get(interface.network_uuid)
                for each in interface.addresses:
                    cell = Cell(source, target, _name(interface), each.address, must_reach=shared is not None)
                    if shared is not None:
                        yield cell._replace(source_address=_own(shared, each))
                    elif not any((network, each.address) in owned for network in networks):
                        yield cell


def asked(wanted: Sequence[Cell]) -> list[Answer]:
    """Sends all requests, and returns the answers in the order of the cells."""
    with ThreadPoolExecutor(_CONCURRENT) as threads:
        return [Answer(cell, answer) for cell, answer in zip(wanted, threads.map(_ask, wanted), strict=True)]


def wrong(answers: Sequence[Answer]) -> Iterator[str]:
    """Yields a sentence for each cell that is not as it must be."""
    for cell, is_answered in answers:
        if is_answered != cell.must_reach:
            verb = "does not reach" if cell.must_reach else "reaches"
            yield f"pod {_pod(cell.source)} {verb} {cell.address} of pod {_pod(cell.target)} in {cell.network}"


def matrix_table(answers: Sequence[Answer]) -> str:
    """Returns a table of all pairs of pods: addresses that answer, and addresses that rightly do not."""
    found = defaultdict[tuple[str, str], list[Answer]](list)
    for answer in answers:
        found[_pod(answer.cell.source), _pod(answer.cell.target)].append(answer)
    pods = sorted({pod for pair in found for pod in pair})
    rows = [(source, *(_cell(found[source, target]) for target in pods)) for source in pods]
    return f"{format_table(('FROM / TO', *pods), rows)}\n{_LEGEND}"


def _cell(found: Sequence[Answer]) -> str:
    if not found:
        return ""
    if any(answer.is_answered != answer.cell.must_reach for answer in found):
        return "WRONG"
    reached = sum(answer.is_answered for answer in found)
    return f"{reached} +{len(found) - reached}"


def _ask(cell: Cell) -> bool:
    timeout = _POSITIVE_TIMEOUT if cell.must_reach else _NEGATIVE_TIMEOUT
    return reaches(cell.source.attachment.netns, cell.address, source=cell.source_address, timeout=timeout)


def _own(interface: VirtualMachineInterface, target: InterfaceAddress) -> str | None:
    """Returns the address of an interface that has the family of the target, if there is one."""
    return next((each.address for each in interface.addresses if each.family == target.family), None)


def _interfaces(sandbox: PodSandbox) -> tuple[VirtualMachineInterface, ...]:
    machine = sandbox.pod.machine
    return machine.interfaces if machine else ()


def _name(interface: VirtualMachineInterface) -> str:
    return interface.nad or "pod network"


def _pod(sandbox: PodSandbox) -> str:
    return f"{sandbox.pod.namespace}/{sandbox.pod.name}"
