"""When a change on disk may be taken: once the file has not changed for a while, gone files alike.

Files are taken together, when all that changed have come to rest: so a pod whose file is renamed, or that is moved from
one file to another, was never away. A file that never comes to rest holds the others up for ten times as long at most.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from manager.manifests.folder_scan import Signature

_PATIENCE = 10  # times the time to settle


_NO_STATE = Signature(0, 0, -1, 0, 0)
_SHORTEST_WAIT = 0.01  # seconds


class _Sighting(NamedTuple):
    signature: Signature | None  # None: the file is gone
    since: float


class Debounce:
    """Compares what is on disk with what was taken. `settle` in seconds; `clock` is monotonic."""

    def __init__(self, settle: float, clock: Callable[[], float]) -> None:
        self._settle = settle
        self._clock = clock
        self._taken: dict[str, Signature] = {}
        self._restless: dict[str, _Sighting] = {}

    @property
    def taken(self) -> Mapping[str, Signature]:
        """Files as they were taken."""
        return self._taken

    @property
    def at_rest(self) -> bool:
        """Whether all that is on disk is taken."""
        return not self._restless

    def due(self, files: Mapping[str, Signature]) -> dict[str, Signature | None]:
        """The changed files that may be taken now, None for those that are gone; `files`: what is on disk."""
        now = self._clock()
        changed = {path: files.get(path) for path in files.keys() | self._taken.keys()}
        self._restless = {
            path: self._sight(path, signature, now)
            for path, signature in changed.items()
            if signature != self._taken.get(path)
        }
        settled = {path: s for path, s in self._restless.items() if now - s.since >= self._settle}
        waited = max((now - sighting.since for sighting in settled.values()), default=0.0)
        if len(settled) < len(self._restless) and waited < self._settle * _PATIENCE:
            return {}
        return {path: sighting.signature for path, sighting in sorted(settled.items())}

    def take(self, path: str) -> None:
        """Marks a file that was due as taken."""
        signature = self._restless.pop(path).signature
        if signature is None:
            del self._taken[path]
        else:
            self._taken[path] = signature

    def drop(self, path: str) -> None:
        """Marks a file that was taken as changed since, so that it becomes due again."""
        self._taken[path] = _NO_STATE

    def wait(self) -> float | None:
        """Seconds until something may be due; None if all is at rest."""
        if self.at_rest:
            return None
        newest = max(sighting.since for sighting in self._restless.values())
        return max(newest + self._settle - self._clock(), _SHORTEST_WAIT)

    def _sight(self, path: str, signature: Signature | None, now: float) -> _Sighting:
        known = self._restless.get(path)
        return known if known is not None and known.signature == signature else _Sighting(signature, now)
