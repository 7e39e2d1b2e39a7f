"""JSON as people write it into annotations, with errors that tell them where to look.

The commonest mistake is invisible: word processors and web pages turn `"` into typographic quotes, as in the samples of
the multi-network design itself. They are named as such.
"""

import json
import re
from collections.abc import Callable
from typing import Any, NoReturn

from manager.parsing.errors import BadValueError
from manager.parsing.quoting import quoted

_MakeObject = Callable[[list[tuple[str, Any]]], dict[str, Any]]

_TYPOGRAPHIC_QUOTE = re.compile("[\u2018-\u201f\u2039\u203a\u00ab\u00bb\u2032\u2033]")
_SURROGATE_ESCAPE = re.compile(r"\\ud[89a-f]", re.IGNORECASE)


def parse_json(text: str, *, make_object: _MakeObject | None = None) -> Any:
    """The value that a JSON text holds.

    `make_object` makes an object of its keys and values, and raises ValueError for what is none; without it the last of
    several equal keys counts. Raises BadValueError, with line and column, for what is no JSON (RFC 8259) or holds half
    a character.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=make_object)
        _refuse_half_characters(text, value)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise BadValueError(f"{quoted(text)} is no valid JSON: {where}{quote_hint(text, near=error.pos)}") from error
    except RecursionError as error:
        raise BadValueError(f"{quoted(text)} is nested too deeply") from error
    except ValueError as error:
        raise BadValueError(f"{quoted(text)} is no valid JSON: {error}") from error
    return value


def parse_literal(text: str) -> Any:
    """The same, but texts may stand between single quotes, as Python writes them and upstream's kube-manager took them.

    Raises BadValueError.
    """
    return parse_json(text if '"' in text else text.replace("'", '"'))


def json_object(value: Any) -> dict[str, Any]:
    """The value, if it is a JSON object. Raises BadValueError."""
    if not isinstance(value, dict):
        raise BadValueError(f"{quoted(value)} is no JSON object")
    return value


def json_list(value: Any) -> list[Any]:
    """The value, if it is a JSON list. Raises BadValueError."""
    if not isinstance(value, list):
        raise BadValueError(f"{quoted(value)} is no JSON list")
    return value


def quote_hint(text: str, *, near: int = 0) -> str:
    """Names a typographic quote in a text that could not be read, the one at `near` if one is there; else empty."""
    found = _TYPOGRAPHIC_QUOTE.match(text, near) or _TYPOGRAPHIC_QUOTE.search(text)
    if found is None:
        return ""
    line, column = text.count("\n", 0, found.start()) + 1, found.start() - text.rfind("\n", 0, found.start())
    quote = f"{found[0]} (U+{ord(found[0]):04X})"
    return f"; {quote} at line {line}, column {column} is a typographic quote, a plain one is needed"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _refuse_half_characters(text: str, value: Any) -> None:
    """Half of a surrogate pair is a string that nothing behind this parser could write down."""
    if _SURROGATE_ESCAPE.search(text):
        json.dumps(value, ensure_ascii=False).encode()
