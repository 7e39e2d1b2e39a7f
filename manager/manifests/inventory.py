"""Inventory of manifest files: the objects in each file, and which file counts if several define the same object.

A file with an error keeps the objects that it had before, so a broken edit does not delete a pod's network. A kept
object yields to the same object in a readable file, so a pod can be moved out of a broken file.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from manager.manifests.decoding import ManifestObject
from manager.manifests.problems import ManifestReason, ObjectKey, object_problem
from manager.source import Problem


class FileContents(NamedTuple):
    """Contents of a file; `kept` are objects that it had before and that cannot be read now."""

    objects: tuple[ManifestObject, ...] = ()
    problems: tuple[Problem, ...] = ()
    kept: tuple[ManifestObject, ...] = ()


class FolderState(NamedTuple):
    """Objects and problems of the whole folder; not `complete` if anything in it cannot be read."""

    objects: Mapping[ObjectKey, ManifestObject]
    problems: tuple[Problem, ...]
    complete: bool


class Inventory:
    """The contents of all files, by path."""

    def __init__(self) -> None:
        self._contents: dict[str, FileContents] = {}
        self._paths: dict[ObjectKey, str] = {}

    def put(self, path: str, objects: Iterable[ManifestObject], problems: Iterable[Problem]) -> None:
        """Stores the contents of a file; one with problems keeps earlier objects that are missing now."""
        contents = FileContents(tuple(objects), tuple(problems))
        if contents.problems and (before := self._contents.get(path)):
            now = {one.key for one in contents.objects}
            contents = contents._replace(kept=tuple(one for one in before.objects + before.kept if one.key not in now))
        self._contents[path] = contents

    def remove(self, path: str) -> None:
        """Removes a file."""
        self._contents.pop(path, None)

    def rename(self, old: str, new: str) -> None:
        """Changes the path of a file."""
        if contents := self._contents.pop(old, None):
            self._contents[new] = contents

    def state(self) -> FolderState:
        """Returns the state; an object in several files is that of the file that had it before, else of the first."""
        contents = [self._contents[path] for path in sorted(self._contents)]
        objects: dict[ObjectKey, ManifestObject] = {}
        problems = [problem for one in contents for problem in one.problems]
        for key, definitions in _by_key(each for one in contents for each in one.objects).items():
            # A duplicate that is added later must not replace the delivered object.
            chosen = next((one for one in definitions if one.location.path == self._paths.get(key)), definitions[0])
            objects[key] = chosen
            problems += [_duplicate(one, chosen) for one in definitions if one is not chosen]
        for kept in (kept for one in contents for kept in one.kept):
            # Objects that can be read take precedence over kept ones.
            objects.setdefault(kept.key, kept)
        self._paths = {key: one.location.path for key, one in objects.items()}
        return FolderState(objects, tuple(problems), complete=not any(one.problems for one in contents))


def _by_key(objects: Iterable[ManifestObject]) -> dict[ObjectKey, list[ManifestObject]]:
    definitions: dict[ObjectKey, list[ManifestObject]] = defaultdict(list)
    for one in objects:
        definitions[one.key].append(one)
    return definitions


def _duplicate(one: ManifestObject, chosen: ManifestObject) -> Problem:
    message = f"defined in {chosen.location} and again in {one.location}: the first location counts"
    return object_problem(one.key, ManifestReason.DUPLICATE, message, path=one.location.path)
