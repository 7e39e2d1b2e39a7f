"""Debounces changes of files: a changed, new or removed file is due once it has been stable for the quiet period.

Changed files become due together, when all of them are stable, so a pod whose file is renamed, or that moves to another
file, is never reported as gone. A file that never becomes stable delays the others by ten quiet periods at most.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from manager.manifests.folder_scan import Signature

_MAX_QUIET_PERIODS = 10
# No file has a negative size.
_UNKNOWN = Signature(0, 0, -1, 0, 0)
_MIN_WAIT = 0.01  # seconds


class _Sighting(NamedTuple):
    signature: Signature | None  # None: the file was removed
    since: float


class Debounce:
    """Compares the files on disk with those that were accepted. `quiet_period` in seconds; `clock` is monotonic."""

    def __init__(self, quiet_period: float, clock: Callable[[], float]) -> None:
        self._quiet_period = quiet_period
        self._clock = clock
        self._accepted: dict[str, Signature] = {}
        self._changing: dict[str, _Sighting] = {}

    @property
    def accepted(self) -> Mapping[str, Signature]:
        """The accepted files."""
        return self._accepted

    @property
    def is_stable(self) -> bool:
        """Whether every file on disk is accepted."""
        return not self._changing

    def due(self, files: Mapping[str, Signature]) -> dict[str, Signature | None]:
        """Returns the changed files that may be accepted now, None for removed ones; `files` are those on disk."""
        now = self._clock()
        changed = {path: files.get(path) for path in files.keys() | self._accepted.keys()}
        # Rebuilt at each scan: a file that is back in its accepted state is no longer changing.
        self._changing = {
            path: self._sight(path, signature, now)
            for path, signature in changed.items()
            if signature != self._accepted.get(path)
        }
        stable = {path: s for path, s in self._changing.items() if now - s.since >= self._quiet_period}
        waited = max((now - sighting.since for sighting in stable.values()), default=0.0)
        if len(stable) < len(self._changing) and waited < self._quiet_period * _MAX_QUIET_PERIODS:
            return {}
        return {path: sighting.signature for path, sighting in sorted(stable.items())}

    def accept(self, path: str) -> None:
        """Marks a due file as accepted."""
        signature = self._changing.pop(path).signature
        if signature is None:
            del self._accepted[path]
        else:
            self._accepted[path] = signature

    def invalidate(self, path: str) -> None:
        """Marks an accepted file as changed, so that it becomes due again."""
        self._accepted[path] = _UNKNOWN

    def wait(self) -> float | None:
        """Returns the seconds until a file may be due; None if all are stable."""
        if self.is_stable:
            return None
        # All files wait for the last one, since they become due together.
        newest = max(sighting.since for sighting in self._changing.values())
        return max(newest + self._quiet_period - self._clock(), _MIN_WAIT)

    def _sight(self, path: str, signature: Signature | None, now: float) -> _Sighting:
        known = self._changing.get(path)
        return known if known is not None and known.signature == signature else _Sighting(signature, now)
