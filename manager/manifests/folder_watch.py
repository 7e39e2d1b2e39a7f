"""Watch of the folder: wakes the reader when the kernel reports a change, or after a timeout.

An inotify event (through watchfiles) is only a hint: it may be repeated, wrong or missing, for example when inotify
runs out of watches or the whole folder is replaced. Without a working watch the folder is polled every second.
watchfiles' documented Rust backend is used directly, since its generators have no timeout for a single wait.
"""

import logging
import os
import stat
import threading

from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

from manager.manifests.errors import FolderError

_log = logging.getLogger(__name__)

_POLL = 1.0  # seconds between scans without a working watch
_STEP_MS = 20  # changes within this time are reported together


class FolderWatch:
    """Recursive watch of a folder. All methods but `stop` block and must be called by one thread at a time."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._stopped = threading.Event()
        self._notify: RustNotify | None = None
        self._watched: tuple[int, int] | None = None

    def open(self) -> None:
        """Starts the watch. Raises FolderError if the folder does not exist or cannot be listed."""
        try:
            if not stat.S_ISDIR(os.stat(self._folder).st_mode):
                raise FolderError(f"{self._folder}: not a directory")
            with os.scandir(self._folder):
                self._watch(self._identity())
        except OSError as error:
            raise FolderError(f"{self._folder}: cannot read the folder: {error.strerror}") from error

    def wait(self, timeout: float, gather: float) -> None:
        """Returns after a change, at most `gather` seconds later, or after `timeout` seconds."""
        identity = self._identity()
        # The path refers to another folder now, and inotify still watches the old one.
        if identity != self._watched:
            self._watch(identity)
        elif self._notify is None:
            self._stopped.wait(min(timeout, _POLL))
        else:
            self._await_change(self._notify, timeout, gather)

    def stop(self) -> None:
        """Makes the current and every later `wait` return at once."""
        self._stopped.set()

    def close(self) -> None:
        """Closes the watch."""
        if self._notify is not None:
            self._notify.close()
            self._notify = None

    def _await_change(self, notify: RustNotify, timeout: float, gather: float) -> None:
        try:
            notify.watch(max(int(gather * 1000), _STEP_MS), _STEP_MS, max(int(timeout * 1000), 1), self._stopped)
        except (OSError, WatchfilesRustInternalError) as error:
            _log.warning("%s: cannot watch the folder, polling it every second: %s", self._folder, error)
            self.close()

    def _watch(self, identity: tuple[int, int] | None) -> None:
        self.close()
        self._watched = identity
        if identity is None:
            return
        try:
            self._notify = RustNotify([self._folder], False, False, 0, True, True)  # noqa: FBT003  # watchfiles' signature
        except (OSError, WatchfilesRustInternalError) as error:
            _log.warning("%s: cannot watch the folder, polling it every second: %s", self._folder, error)

    def _identity(self) -> tuple[int, int] | None:
        """Returns device and inode; None if the folder does not exist."""
        try:
            status = os.stat(self._folder)
        except OSError:
            return None
        return status.st_dev, status.st_ino
