"""Reader of the manifest folder: scan, wait until files are stable, parse what changed, and return the new state.

All methods block and must be called by one thread at a time.
"""

import time
from collections.abc import Callable, Mapping

from manager.manifests.debounce import Debounce
from manager.manifests.decoding import ManifestObject, decode_document
from manager.manifests.documents import parse_documents
from manager.manifests.errors import FileChangedError, InvalidManifestError
from manager.manifests.folder_scan import Signature, Snapshot, read, scan
from manager.manifests.inventory import FolderState, Inventory
from manager.manifests.problems import ManifestReason, file_problem
from manager.source import Problem

_PAUSE_PER_SCAN_TIME = 4  # the pause after a scan is at least this many times as long as the scan


class ManifestFolder:
    """The folder. `quiet_period` and `rescan` are in seconds; `node` is the node of pods that name none."""

    def __init__(
        self,
        folder: str,
        *,
        node: str,
        quiet_period: float,
        rescan: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._node = node
        self._rescan = rescan
        self._clock = clock
        self._debounce = Debounce(quiet_period, clock)
        self._inventory = Inventory()
        self._failed: dict[str, float] = {}
        self._last_state: tuple[dict[str, str], bool] | None = None
        self.gather = quiet_period
        """Seconds for which changes are gathered before the next scan; grows with the time that a scan takes."""

    def refresh(self) -> FolderState | None:
        """Reads files that changed and are stable. Returns the new state; None if nothing changed."""
        started = self._clock()
        self._retry_failed(started)
        snapshot = scan(self._folder)
        due = self._debounce.due(self._files(snapshot))
        self.gather = max(self.gather, _PAUSE_PER_SCAN_TIME * (self._clock() - started))
        # Before loading, which removes the objects of the old path.
        self._follow_renamed(due)
        for path, signature in due.items():
            self._load(path, signature)
        state = (snapshot.unreadable, self._debounce.is_stable)
        if not due and (not self._debounce.is_stable or state == self._last_state):
            return None
        self._last_state = state
        return self._state(snapshot)

    def wait(self) -> float:
        """Returns the seconds until the next refresh, unless the folder changes before."""
        until_stable = self._debounce.wait()
        return self._rescan if until_stable is None else min(until_stable, self._rescan)

    def _files(self, snapshot: Snapshot) -> dict[str, Signature]:
        """Returns the listed files, and files that cannot be checked in their last accepted state."""
        # Otherwise a folder that cannot be read for a moment would remove its pods.
        hidden = {path: accepted for path, accepted in self._debounce.accepted.items() if snapshot.may_hide(path)}
        return hidden | snapshot.files

    def _follow_renamed(self, due: Mapping[str, Signature | None]) -> None:
        """Lets a renamed file keep its objects, even if it is broken at the same time.

        An inode that was freed and reused looks like a rename: the new file then keeps the old objects until it can be
        read.
        """
        accepted = self._debounce.accepted
        removed = {accepted[path][:2]: path for path, signature in due.items() if signature is None}
        for path, signature in due.items():
            if signature is not None and path not in accepted and signature[:2] in removed:
                self._inventory.rename(removed[signature[:2]], path)

    def _load(self, path: str, signature: Signature | None) -> None:
        try:
            if signature is None:
                self._inventory.remove(path)
            else:
                self._inventory.put(path, *self._read(path, signature))
        except FileChangedError:
            return  # not accepted, so it becomes due again
        self._debounce.accept(path)

    def _read(self, path: str, signature: Signature) -> tuple[list[ManifestObject], list[Problem]]:
        try:
            documents = parse_documents(read(self._folder, path, signature), is_json=path.endswith(".json"))
        except InvalidManifestError as error:
            return [], [file_problem(path, ManifestReason.INVALID, str(error))]
        except OSError as error:
            self._failed[path] = self._clock()
            return [], [file_problem(path, ManifestReason.UNREADABLE, f"cannot be read: {error.strerror}")]
        results = [
            result
            for position, document in enumerate(documents, 1)
            for result in decode_document(document, path=path, position=position, node=self._node)
        ]
        objects = [result for result in results if isinstance(result, ManifestObject)]
        return objects, [result for result in results if isinstance(result, Problem)]

    def _retry_failed(self, now: float) -> None:
        """Retries failed reads at the next rescan: the end of a disk error need not change the file's signature."""
        for path in [path for path, failed in self._failed.items() if now - failed >= self._rescan]:
            del self._failed[path]
            self._debounce.invalidate(path)

    def _state(self, snapshot: Snapshot) -> FolderState:
        state = self._inventory.state()
        unreadable = [self._unreadable(path, reason) for path, reason in sorted(snapshot.unreadable.items())]
        complete = state.complete and self._debounce.is_stable and not unreadable
        return FolderState(state.objects, (*unreadable, *state.problems), complete)

    def _unreadable(self, path: str, reason: str) -> Problem:
        problem = f"folder {self._folder} {reason}" if path == "." else reason
        return file_problem(path, ManifestReason.UNREADABLE, problem)
