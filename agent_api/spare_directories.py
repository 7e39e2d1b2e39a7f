"""Spare directories: made ahead, filled with the first files of a directory to come, and renamed to it as a whole.

On ext4 a directory takes as long to make as two small files in it. The start of a pod waits for its files, and need not
wait for that.

The directory comes into being with all its files, so a kill leaves it whole or not at all.

Blocking and not thread-safe, as `atomic_files`.
"""

import errno
import itertools
import os
import shutil
from collections.abc import Mapping

from agent_api.atomic_files import write_file

_NUMBER = 4  # pods that are added at the same time

_NOT_POSSIBLE = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.ENOENT)
"""What the rename fails with if the directory has come, or its parent or the spare one has gone."""


class SpareDirectories:
    """Empty directories below `root`, which it owns."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._names = itertools.count(1)
        self._spares: list[str] = []

    def clear(self) -> None:
        """Removes what a killed process left, as far as that is possible, and makes new ones. Raises OSError."""
        self._spares.clear()
        shutil.rmtree(self._root, ignore_errors=True)
        while self.make_one():
            pass

    def make_one(self) -> bool:
        """Makes one in place of one that was used; returns whether more are missing. Raises OSError.

        Nobody should wait for it.
        """
        if len(self._spares) < _NUMBER:
            self._spares.append(self._make())
        return len(self._spares) < _NUMBER

    def publish(self, directory: str, files: Mapping[str, bytes]) -> bool:
        """Creates a directory with files, all or nothing; an empty one is replaced. Raises OSError.

        Returns False, and changes nothing, if there is no spare one, the directory has files, or its parent is missing.
        """
        if not self._spares:
            return False
        spare = self._spares.pop()
        try:
            for name, content in files.items():
                write_file(os.path.join(spare, name), content)
            os.rename(spare, directory)
        except OSError as error:
            shutil.rmtree(spare, ignore_errors=True)
            if error.errno in _NOT_POSSIBLE:
                return False
            raise
        return True

    def _make(self) -> str:
        while True:
            spare = os.path.join(self._root, str(next(self._names)))
            try:
                os.mkdir(spare)
            except FileExistsError:  # left by a killed process, and not removable
                continue
            except FileNotFoundError:
                os.makedirs(spare)
            return spare
