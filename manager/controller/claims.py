"""Claims on what only one pod may have, such as a MAC address in a network: first come, first served."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from manager.dependencies import Dependency


class Conflict(NamedTuple):
    """A claim that failed, and the pod that holds it."""

    dependency: Dependency
    holder: str


class Claims:
    """Claims of pods, named by `namespace/name`; `on_released` is called with each dependency that becomes free."""

    def __init__(self, on_released: Callable[[Dependency], None]) -> None:
        self._on_released = on_released
        self._holders: dict[Dependency, str] = {}
        self._claims: dict[str, tuple[Dependency, ...]] = {}

    def __len__(self) -> int:
        return len(self._claims)

    def claim(self, pod: str, dependencies: Iterable[Dependency]) -> Conflict | None:
        """Claims all of them for the pod, in place of its earlier claims; or none, and returns the first conflict."""
        wanted = tuple(dict.fromkeys(dependencies))
        for dependency in wanted:
            if (holder := self._holders.get(dependency, pod)) != pod:
                return Conflict(dependency, holder)
        dropped = [dependency for dependency in self._claims.get(pod, ()) if dependency not in wanted]
        self._claims[pod] = wanted
        self._holders.update(dict.fromkeys(wanted, pod))
        self._free(dropped)
        return None

    def release(self, pod: str) -> None:
        """Releases all claims of the pod. Idempotent."""
        self._free(self._claims.pop(pod, ()))

    def _free(self, dependencies: Iterable[Dependency]) -> None:
        for dependency in dependencies:
            del self._holders[dependency]
            self._on_released(dependency)
