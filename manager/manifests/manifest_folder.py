"""The folder as it is read: list, wait for rest, read what changed, and say what it all amounts to.

Everything here blocks and is called by one thread at a time.
"""

import time
from collections.abc import Callable, Mapping

from manager.manifests.debounce import Debounce
from manager.manifests.decoding import ManifestObject, decode_document
from manager.manifests.documents import read_documents
from manager.manifests.errors import FileChangedError, InvalidManifestError
from manager.manifests.folder_scan import Signature, Snapshot, read, scan
from manager.manifests.inventory import FolderState, Inventory
from manager.manifests.problems import ManifestReason, file_problem
from manager.source import Problem

_SHARE_OF_TIME = 4  # a scan is followed by as many times its length without one


class ManifestFolder:
    """What the folder says. `settle` and `rescan` in seconds; `node`: where pods run that name none."""

    def __init__(
        self,
        folder: str,
        *,
        node: str,
        settle: float,
        rescan: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._node = node
        self._rescan = rescan
        self._clock = clock
        self._settling = Debounce(settle, clock)
        self._inventory = Inventory()
        self._failed: dict[str, float] = {}
        self._last_state: tuple[dict[str, str], bool] | None = None
        self.gather = settle
        """Seconds for which changes are gathered before the next scan, so that scans never fill the time."""

    def refresh(self) -> FolderState | None:
        """Reads what changed and has come to rest. None if nothing did."""
        started = self._clock()
        self._retry_failed(started)
        snapshot = scan(self._folder)
        due = self._settling.due(self._files(snapshot))
        self.gather = max(self.gather, _SHARE_OF_TIME * (self._clock() - started))
        self._follow_renamed(due)
        for path, signature in due.items():
            self._take(path, signature)
        state = (snapshot.unreadable, self._settling.at_rest)
        if not due and (not self._settling.at_rest or state == self._last_state):
            return None
        self._last_state = state
        return self._view(snapshot)

    def wait(self) -> float:
        """Seconds until the next refresh, if nothing happens before."""
        until_rest = self._settling.wait()
        return self._rescan if until_rest is None else min(until_rest, self._rescan)

    def _files(self, snapshot: Snapshot) -> dict[str, Signature]:
        """Files as they are; those that cannot be looked at, as they were."""
        hidden = {path: taken for path, taken in self._settling.taken.items() if snapshot.hides(path)}
        return hidden | snapshot.files

    def _follow_renamed(self, due: Mapping[str, Signature | None]) -> None:
        """A file that is renamed keeps what it gave, even if it is broken at the same moment.

        An inode that was freed and given to another file looks the same; that file then keeps it until it can be read.
        """
        taken = self._settling.taken
        gone = {taken[path][:2]: path for path, signature in due.items() if signature is None}
        for path, signature in due.items():
            if signature is not None and path not in taken and signature[:2] in gone:
                self._inventory.rename(gone[signature[:2]], path)

    def _take(self, path: str, signature: Signature | None) -> None:
        try:
            if signature is None:
                self._inventory.remove(path)
            else:
                self._inventory.put(path, *self._read(path, signature))
        except FileChangedError:
            return
        self._settling.take(path)

    def _read(self, path: str, signature: Signature) -> tuple[list[ManifestObject], list[Problem]]:
        try:
            documents = read_documents(read(self._folder, path, signature), is_json=path.endswith(".json"))
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
        return [one for one in results if isinstance(one, ManifestObject)], [
            one for one in results if isinstance(one, Problem)
        ]

    def _retry_failed(self, now: float) -> None:
        """A file that the disk refused is read again with the next rescan: its signature need not tell of the cure."""
        for path in [path for path, failed in self._failed.items() if now - failed >= self._rescan]:
            del self._failed[path]
            self._settling.drop(path)

    def _view(self, snapshot: Snapshot) -> FolderState:
        view = self._inventory.view()
        unreadable = [self._unreadable(path, reason) for path, reason in sorted(snapshot.unreadable.items())]
        complete = view.complete and self._settling.at_rest and not unreadable
        return FolderState(view.objects, (*unreadable, *view.problems), complete)

    def _unreadable(self, path: str, reason: str) -> Problem:
        what = f"(the folder {self._folder}) {reason}" if path == "." else reason
        return file_problem(path, ManifestReason.UNREADABLE, what)
