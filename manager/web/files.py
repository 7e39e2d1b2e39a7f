"""Files of the web page, read once from the package."""

import hashlib
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

_CONTENT_TYPES: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}


class PageFile(NamedTuple):
    """A file; `name` is its path below the folder, `tag` changes with its content."""

    name: str
    content: bytes
    content_type: str
    tag: str


def page_files() -> list[PageFile]:
    """Returns all files of the page."""
    return list(_below(files("manager.web") / "files", ""))


def _below(folder: Traversable, path: str) -> Iterator[PageFile]:
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        if entry.is_dir():
            yield from _below(entry, f"{path}{entry.name}/")
        else:
            yield _read(entry, f"{path}{entry.name}")


def _read(entry: Traversable, name: str) -> PageFile:
    content = entry.read_bytes()
    kind = _CONTENT_TYPES[name[name.rindex(".") :]]
    return PageFile(name, content, kind, hashlib.sha256(content).hexdigest()[:32])
