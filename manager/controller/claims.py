"""Who has what only one pod may have, such as a MAC in a network: whoever claimed it first, until it is dropped."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from manager.dependencies import Dependency


class Conflict(NamedTuple):
    """A claim that cannot be had, and the pod that has it."""

    need: Dependency
    holder: str


class Claims:
    """Claims of pods, which are named by `namespace/name`; `freed` is told what can be claimed again."""

    def __init__(self, freed: Callable[[Dependency], None]) -> None:
        self._freed = freed
        self._holder: dict[Dependency, str] = {}
        self._claimed: dict[str, tuple[Dependency, ...]] = {}

    def claim(self, pod: str, needs: Iterable[Dependency]) -> Conflict | None:
        """Gives all of them to the pod, in place of what it had, or none and returns the first that another pod has."""
        wanted = tuple(dict.fromkeys(needs))
        for need in wanted:
            if (holder := self._holder.get(need, pod)) != pod:
                return Conflict(need, holder)
        given_up = [need for need in self._claimed.get(pod, ()) if need not in wanted]
        self._claimed[pod] = wanted
        self._holder.update(dict.fromkeys(wanted, pod))
        self._free(given_up)
        return None

    def drop(self, pod: str) -> None:
        """Gives up all that the pod has; one that has nothing is no error."""
        self._free(self._claimed.pop(pod, ()))

    def _free(self, needs: Iterable[Dependency]) -> None:
        for need in needs:
            del self._holder[need]
            self._freed(need)
