"""Files of the web page, read once from the package."""

import hashlib
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

from manager.web.bundle import bundled_script

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


SCRIPT: Final = "page.js"
STYLES: Final = "page.css"
"""What a browser loads: all modules, and all style sheets."""

_ENTRY: Final = "app.js"
_SHEETS: Final = ("colours.css", "layout.css", "content.css", "controls.css", "pictures.css")


def page_files() -> list[PageFile]:
    """Returns all files of the page, with its script and its style sheet that are made of the others."""
    found = list(_below(files("manager.web") / "files", ""))
    texts = {file.name: file.content.decode() for file in found if file.name.endswith((".js", ".css"))}
    script, styles = bundled_script(texts, _ENTRY), "\n".join(texts[name] for name in _SHEETS)
    return [*found, _page_file(SCRIPT, script.encode()), _page_file(STYLES, styles.encode())]


def _below(folder: Traversable, path: str) -> Iterator[PageFile]:
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        if entry.is_dir():
            yield from _below(entry, f"{path}{entry.name}/")
        else:
            yield _read(entry, f"{path}{entry.name}")


def _read(entry: Traversable, name: str) -> PageFile:
    return _page_file(name, entry.read_bytes())


def _page_file(name: str, content: bytes) -> PageFile:
    kind = _CONTENT_TYPES[name[name.rindex(".") :]]
    return PageFile(name, content, kind, hashlib.sha256(content).hexdigest()[:32])
