"""Bundles the page's modules into one script, and its style sheets into one.

A browser has six connections to the manager, and behind `kubectl port-forward` each request takes a round trip: forty
of them would take most of the time until something is shown. Modules become functions in the order of their imports,
so each still has names of its own. Only the forms of `import` and `export` that the page uses are known.
"""

import posixpath
import re
from collections.abc import Mapping
from typing import Final

_IMPORT: Final = re.compile(r'^import (?:\{([^}]*)\}|\* as (\w+)) from "([^"]+)";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export ((?:async )?function|class|const) (\w+)", re.MULTILINE)
_UNKNOWN: Final = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def bundled_script(modules: Mapping[str, str], entry: str) -> str:
    """Returns a script with the module `entry` and all that it imports. `modules` are by path.

    Raises ValueError for modules that import each other in a circle, and for unknown forms of `import` and `export`.
    """
    parts: dict[str, str] = {}
    _add(modules, entry, parts, importing=())
    return "\n".join(parts.values())


def _add(modules: Mapping[str, str], path: str, parts: dict[str, str], *, importing: tuple[str, ...]) -> None:
    if path in importing:
        raise ValueError(f"{path}: imports itself by {importing[-1]}")
    if path in parts:
        return
    folder, source = posixpath.dirname(path), modules[path]
    imported = {found[3]: posixpath.normpath(posixpath.join(folder, found[3])) for found in _IMPORT.finditer(source)}
    for each in imported.values():
        _add(modules, each, parts, importing=(*importing, path))
    parts[path] = _as_function(path, source, imported)


def _as_function(path: str, source: str, imported: Mapping[str, str]) -> str:
    def constant(found: re.Match[str]) -> str:
        names = found[2] or "{" + found[1].replace(" as ", ": ") + "}"
        return f"const {names} = {_variable(imported[found[3]])};\n"

    exported = [found[2] for found in _EXPORT.finditer(source)]
    body = _EXPORT.sub(r"\1 \2", _IMPORT.sub(constant, source))
    if unknown := _UNKNOWN.search(body):
        raise ValueError(f"{path}: {unknown[0]!r} cannot be bundled")
    return f"const {_variable(path)} = (() => {{ // {path}\n{body}return {{ {', '.join(exported)} }};\n}})();\n"


def _variable(path: str) -> str:
    return "$" + re.sub(r"\W", "_", path)
