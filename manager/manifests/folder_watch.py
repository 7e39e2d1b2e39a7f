"""Tells when to look at the folder again: when the kernel says that something changed in it, or after a while.

The kernel's word (inotify, through watchfiles) is a hint and no more: it may come twice, for nothing, or not at all,
where inotify has no watches left or the folder was replaced as a whole. Then the folder is looked at every second.
Its "Rust backend" is used as watchfiles documents it: the generators built on that take no timeout for a single wait.
"""

import logging
import os
import stat
import threading

from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

from manager.manifests.errors import FolderError

_log = logging.getLogger(__name__)

_POLL = 1.0  # seconds between looks where nothing can be watched
_STEP_MS = 20  # changes that follow each other this closely are reported together


class FolderWatch:
    """A watch of a folder and all below it; all but `stop` block and are called by one thread at a time."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._stopped = threading.Event()
        self._notify: RustNotify | None = None
        self._watched: tuple[int, int] | None = None

    def open(self) -> None:
        """Begins to watch. Raises FolderError if the folder is not there or cannot be listed."""
        try:
            if not stat.S_ISDIR(os.stat(self._folder).st_mode):
                raise FolderError(f"{self._folder} is no folder")
            with os.scandir(self._folder):
                self._watch(self._identity())
        except OSError as error:
            raise FolderError(f"the folder {self._folder} cannot be read: {error.strerror}") from error

    def wait(self, timeout: float, gather: float) -> None:
        """Returns when something has changed and `gather` seconds at most have passed since, or after `timeout`."""
        identity = self._identity()
        if identity != self._watched:
            self._watch(identity)
        elif self._notify is None:
            self._stopped.wait(min(timeout, _POLL))
        else:
            self._await_change(self._notify, timeout, gather)

    def stop(self) -> None:
        """Makes `wait` return, now and ever after."""
        self._stopped.set()

    def close(self) -> None:
        """Ends the watch."""
        if self._notify is not None:
            self._notify.close()
            self._notify = None

    def _await_change(self, notify: RustNotify, timeout: float, gather: float) -> None:
        try:
            notify.watch(max(int(gather * 1000), _STEP_MS), _STEP_MS, max(int(timeout * 1000), 1), self._stopped)
        except (OSError, WatchfilesRustInternalError) as error:
            _log.warning("%s cannot be watched, it is looked at every second: %s", self._folder, error)
            self.close()

    def _watch(self, identity: tuple[int, int] | None) -> None:
        self.close()
        self._watched = identity
        if identity is None:
            return
        try:
            self._notify = RustNotify([self._folder], False, False, 0, True, True)  # noqa: FBT003  # its own signature
        except (OSError, WatchfilesRustInternalError) as error:
            _log.warning("%s cannot be watched, it is looked at every second: %s", self._folder, error)

    def _identity(self) -> tuple[int, int] | None:
        """Device and inode; None if the folder is not there."""
        try:
            status = os.stat(self._folder)
        except OSError:
            return None
        return status.st_dev, status.st_ino
