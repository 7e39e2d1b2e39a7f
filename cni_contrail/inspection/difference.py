"""Difference between the node's kernel and its desired state: one object, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cni_contrail.link.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Key = TypeVar("Key")
    Value = TypeVar("Value")

MISSING, STALE, WRONG = "missing", "stale", "wrong"
"""Faults of an object: it does not exist; it exists and should not; it exists and is not as it should be."""


class Difference(NamedTuple):
    """`vni` is the number of the network, or INDEX_0 for what concerns index 0, or all networks of the node.

    `found` says how an object is that is WRONG.
    """

    vni: int
    fault: str
    what: str
    found: str = ""


def missing(vni: int, objects: Iterable[str]) -> Iterator[Difference]:
    """Yields differences for objects that do not exist."""
    return (Difference(vni, MISSING, each) for each in sorted(objects))


def stale(vni: int, objects: Iterable[str]) -> Iterator[Difference]:
    """Yields differences for objects that should not exist."""
    return (Difference(vni, STALE, each) for each in sorted(objects))


def changed(
    vni: int, desired: Mapping[Key, Value], found: Mapping[Key, Value], text: Callable[[Key, Value], str]
) -> Iterator[Difference]:
    """Yields differences for desired values by key that `found` does not have, or has otherwise; `text` names one."""
    for key, value in desired.items():
        if key not in found:
            yield Difference(vni, MISSING, text(key, value))
        elif found[key] != value:
            yield Difference(vni, WRONG, text(key, value), text(key, found[key]))
