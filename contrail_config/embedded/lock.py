"""One process owns a store: a lock that the kernel frees with its holder, however that ends.

It lies in a file of its own, since closing any descriptor of the database's file would drop SQLite's own locks on it
(POSIX advisory locks belong to the process, not to the descriptor).
"""

import fcntl
import os

from contrail_config.errors import StoreUnavailableError


class OwnerLock:
    """Held from its making until `release`; the file, which stays, names the holder's process.

    Raises StoreUnavailableError if another holder has it, in this process or in another one, and OSError.
    """

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._take(path)
        except BaseException:
            os.close(self._descriptor)
            raise

    def release(self) -> None:
        """Gives the lock free."""
        os.close(self._descriptor)

    def _take(self, path: str) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            raise StoreUnavailableError(f"{path} is held by process {holder or '(unknown)'}") from error
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
