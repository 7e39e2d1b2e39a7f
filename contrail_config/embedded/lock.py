"""File lock: one process owns a store. The kernel releases the lock when the holder ends, however it ends.

The lock is on a file of its own: closing any descriptor of the database file would drop SQLite's own locks on it (POSIX
advisory locks belong to the process, not to the descriptor).
"""

import fcntl
import os

from contrail_config.errors import StoreUnavailableError


class FileLock:
    """Locked from construction until `release`. The file is not deleted; it contains the process id of the holder.

    Raises StoreUnavailableError if it is already locked, by this process or another one, and OSError.
    """

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._acquire(path)
        except BaseException:
            os.close(self._descriptor)
            raise

    def release(self) -> None:
        """Releases the lock."""
        os.close(self._descriptor)

    def _acquire(self, path: str) -> None:
        # A flock lock belongs to the open file, so a second open in this process conflicts too; not so with lockf.
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            raise StoreUnavailableError(f"{path}: locked by process {holder or '(unknown)'}") from error
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
