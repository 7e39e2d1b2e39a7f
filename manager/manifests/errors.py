"""Errors of reading a folder of manifests.

ManifestError
 ├─ FolderError           the folder does not exist or is not a directory; also a ValueError: a setting is wrong
 ├─ InvalidManifestError  a file or document is invalid; becomes a Problem
 └─ FileChangedError      a file changed while it was read; it is read again when it is stable
"""


class ManifestError(Exception):
    """Root of the errors of reading manifests."""


class FolderError(ManifestError, ValueError):
    """The folder cannot be read at start."""


class InvalidManifestError(ManifestError):
    """A file or document is invalid; the message says why, not where."""


class FileChangedError(ManifestError):
    """A file is being written."""
