"""Which file holds which object, and which counts where several do.

A file that cannot be used whole keeps what it gave before: half a file is no reason to take a pod's network away. What
it kept yields to the same object in a file that can be read, so a pod can be moved out of a broken file.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from manager.manifests.decoding import ManifestObject
from manager.manifests.problems import ManifestReason, ObjectKey, object_problem
from manager.source import Problem


class FileContents(NamedTuple):
    """What a file gives; `kept` is what it gave before and cannot be read in it now."""

    found: tuple[ManifestObject, ...] = ()
    problems: tuple[Problem, ...] = ()
    kept: tuple[ManifestObject, ...] = ()


class FolderState(NamedTuple):
    """What the folder says as a whole; not `complete` if there is anything in it that cannot be read."""

    objects: Mapping[ObjectKey, ManifestObject]
    problems: tuple[Problem, ...]
    complete: bool


class Inventory:
    """The contents of all files, by path."""

    def __init__(self) -> None:
        self._contents: dict[str, FileContents] = {}
        self._homes: dict[ObjectKey, str] = {}

    def put(self, path: str, found: Iterable[ManifestObject], problems: Iterable[Problem]) -> None:
        """Takes what was read of a file; with problems it keeps what it gave before and does not give now."""
        contents = FileContents(tuple(found), tuple(problems))
        if contents.problems and (before := self._contents.get(path)):
            now = {one.key for one in contents.found}
            contents = contents._replace(kept=tuple(one for one in before.found + before.kept if one.key not in now))
        self._contents[path] = contents

    def remove(self, path: str) -> None:
        """Takes note that a file is gone."""
        self._contents.pop(path, None)

    def rename(self, old: str, new: str) -> None:
        """Takes note that a file has another path now."""
        if contents := self._contents.pop(old, None):
            self._contents[new] = contents

    def view(self) -> FolderState:
        """What counts: of an object in several places that in the file which held it before, else in the first."""
        contents = [self._contents[path] for path in sorted(self._contents)]
        objects: dict[ObjectKey, ManifestObject] = {}
        problems = [problem for one in contents for problem in one.problems]
        for key, places in _by_key(found for one in contents for found in one.found).items():
            chosen = next((one for one in places if one.place.path == self._homes.get(key)), places[0])
            objects[key] = chosen
            problems += [_duplicate(one, chosen) for one in places if one is not chosen]
        for kept in (kept for one in contents for kept in one.kept):
            objects.setdefault(kept.key, kept)
        self._homes = {key: one.place.path for key, one in objects.items()}
        return FolderState(objects, tuple(problems), complete=not any(one.problems for one in contents))


def _by_key(found: Iterable[ManifestObject]) -> dict[ObjectKey, list[ManifestObject]]:
    places: dict[ObjectKey, list[ManifestObject]] = defaultdict(list)
    for one in found:
        places[one.key].append(one)
    return places


def _duplicate(one: ManifestObject, chosen: ManifestObject) -> Problem:
    message = f"stands in {chosen.place} and again in {one.place}: the former counts"
    return object_problem(one.key, ManifestReason.DUPLICATE, message, path=one.place.path)
