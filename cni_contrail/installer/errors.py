"""Errors of the installer.

InstallError                a file cannot be read, written or removed, or is invalid: the message says which and why
 └─ DirectoryGoneError      a directory of the node is gone: its mount in this container leads nowhere
"""


class InstallError(Exception):
    """Something could not be installed or removed; it is tried again."""


class DirectoryGoneError(InstallError):
    """A directory was removed, perhaps created again: only a restarted container sees the new one."""
