"""Problems in a folder of manifests, reported on the file or on the object in it."""

import os
from enum import StrEnum
from typing import NamedTuple

from manager.source import Problem

ObjectKey = tuple[str, str, str]
"""kind, namespace (empty for a namespace itself), name"""


class ManifestReason(StrEnum):
    """Event reasons: the file cannot be read, is invalid, or repeats an object."""

    UNREADABLE = "ManifestUnreadable"
    INVALID = "ManifestInvalid"
    DUPLICATE = "ManifestDuplicate"


class ManifestLocation(NamedTuple):
    """Location of an object in a file; documents and list items are counted from 1."""

    path: str
    document: int
    item: int | None = None

    def __str__(self) -> str:
        return f"{printable_path(self.path)}, {self.within_file}"

    @property
    def within_file(self) -> str:
        """The location without the path."""
        return f"document {self.document}" + ("" if self.item is None else f", item {self.item}")


def file_problem(path: str, reason: ManifestReason, message: str) -> Problem:
    """Returns a problem of a file; the path is relative to the folder, and the message begins with it."""
    name = printable_path(path)
    return Problem("Manifest", "", name, "", reason, f"{name}: {message}")


def object_problem(key: ObjectKey, reason: ManifestReason, message: str, *, path: str) -> Problem:
    """Returns a problem of an object in that file. Namespaces have no events here, so theirs is one of the file."""
    kind, namespace, name = key
    if kind == "Namespace":
        return Problem("Manifest", "", printable_path(path), "", reason, f"Namespace {name}: {message}")
    return Problem(kind, namespace, name, "", reason, message)


def printable_path(path: str) -> str:
    """Returns a path that can be encoded: file names need not be UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
