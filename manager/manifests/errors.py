"""What can be wrong with a folder of manifests.

ManifestError
 ├─ FolderError      the folder is not there, or is none; also a ValueError, since a setting is wrong
 ├─ UnusableError    a file or a document cannot be used; it becomes a Problem
 └─ UnsettledError   a file changed while it was read: it is read again when it has come to rest
"""


class ManifestError(Exception):
    """Root of everything that reading manifests raises."""


class FolderError(ManifestError, ValueError):
    """The folder cannot be read at start."""


class InvalidManifestError(ManifestError):
    """A file or document cannot be used; the message says why, not where."""


class FileChangedError(ManifestError):
    """A file is being written."""
