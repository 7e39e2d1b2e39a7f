"""JSON in annotations, with errors that give line and column.

The most common mistake is hard to see: word processors and web pages turn `"` into typographic quotes, as in the
examples of the multi-network design itself. The error names such a quote.
"""

import json
import re
from collections.abc import Callable
from typing import Any, NoReturn

from manager.parsing.errors import BadValueError
from manager.parsing.quoting import quoted

_MakeObject = Callable[[list[tuple[str, Any]]], dict[str, Any]]

_TYPOGRAPHIC_QUOTE = re.compile("[\u2018-\u201f\u2039\u203a\u00ab\u00bb\u2032\u2033]")
# Text that was decoded from UTF-8 contains no lone surrogate, so only escapes need a check.
_SURROGATE_ESCAPE = re.compile(r"\\ud[89a-f]", re.IGNORECASE)


def parse_json(text: str, *, make_object: _MakeObject | None = None) -> Any:
    """Returns the value of a JSON text.

    `make_object` makes an object from its keys and values, and raises ValueError to reject it; without it, the last of
    duplicate keys wins. Raises BadValueError, with line and column, if the text is not JSON (RFC 8259) or contains a
    lone surrogate.
    """
    try:
        value = json.loads(text, parse_constant=_reject_constant, object_pairs_hook=make_object)
        _reject_lone_surrogates(text, value)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise BadValueError(f"{quoted(text)} is not valid JSON: {where}{quote_hint(text, near=error.pos)}") from error
    # The JSON parser recurses per level of nesting.
    except RecursionError as error:
        raise BadValueError(f"{quoted(text)} is nested too deeply") from error
    # Raised by make_object, by UTF-8 encoding, or by int(), which limits the digits of a number.
    except ValueError as error:
        raise BadValueError(f"{quoted(text)} is not valid JSON: {error}") from error
    return value


def parse_literal(text: str) -> Any:
    """Like `parse_json`, but also accepts single quotes: upstream's kube-manager accepted Python literals.

    Raises BadValueError.
    """
    # With double quotes the text is JSON already, and an apostrophe is part of a string.
    return parse_json(text if '"' in text else text.replace("'", '"'))


def json_object(value: Any) -> dict[str, Any]:
    """Returns the value if it is a JSON object, else raises BadValueError."""
    if not isinstance(value, dict):
        raise BadValueError(f"{quoted(value)} is not a JSON object")
    return value


def json_list(value: Any) -> list[Any]:
    """Returns the value if it is a JSON list, else raises BadValueError."""
    if not isinstance(value, list):
        raise BadValueError(f"{quoted(value)} is not a JSON list")
    return value


def quote_hint(text: str, *, near: int = 0) -> str:
    """Returns a hint about a typographic quote in an invalid text, preferably the one at `near`; else an empty text."""
    # The parser stops at the quote or just after the text before it.
    found = _TYPOGRAPHIC_QUOTE.match(text, near) or _TYPOGRAPHIC_QUOTE.search(text)
    if found is None:
        return ""
    line, column = text.count("\n", 0, found.start()) + 1, found.start() - text.rfind("\n", 0, found.start())
    quote = f"{found[0]} (U+{ord(found[0]):04X})"
    return f"; {quote} at line {line}, column {column} is a typographic quote: use a plain quote"


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _reject_lone_surrogates(text: str, value: Any) -> None:
    """A lone surrogate cannot be encoded as UTF-8, so later writes of the string would fail."""
    if _SURROGATE_ESCAPE.search(text):
        json.dumps(value, ensure_ascii=False).encode()
