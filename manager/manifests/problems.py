"""What is wrong in a folder of manifests, as the manager records it: on the file, or on the object in it."""

import os
from enum import StrEnum
from typing import NamedTuple

from manager.source import Problem

ObjectKey = tuple[str, str, str]
"""kind, namespace (empty for a namespace itself), name"""


class ManifestReason(StrEnum):
    """Why: the disk, what is written there, or that it is written twice."""

    UNREADABLE = "ManifestUnreadable"
    INVALID = "ManifestInvalid"
    DUPLICATE = "ManifestDuplicate"


class ManifestLocation(NamedTuple):
    """Where an object stands; documents and the items of a list are counted from 1."""

    path: str
    document: int
    item: int | None = None

    def __str__(self) -> str:
        item = "" if self.item is None else f", item {self.item}"
        return f"{printable_path(self.path)}, document {self.document}{item}"


def file_problem(path: str, reason: ManifestReason, message: str) -> Problem:
    """A problem with a file, by its path below the folder; the message begins with it."""
    name = printable_path(path)
    return Problem("Manifest", "", name, "", reason, f"{name} {message}")


def object_problem(key: ObjectKey, reason: ManifestReason, message: str, *, path: str) -> Problem:
    """A problem with an object in that file; that of a namespace, which has no events here, is the file's."""
    kind, namespace, name = key
    if kind == "Namespace":
        return Problem("Manifest", "", printable_path(path), "", reason, f"Namespace {name}: {message}")
    return Problem(kind, namespace, name, "", reason, message)


def printable_path(path: str) -> str:
    """A path that can be written down: file names need not be UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
