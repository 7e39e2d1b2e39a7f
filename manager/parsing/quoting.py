"""Quotes values for messages: escaped and truncated, since user input may have any content and size."""

import reprlib
from collections.abc import Sequence

_MAX_STRING = 120
_MAX_TOTAL = 500
_MAX_LISTED = 8

_repr = reprlib.Repr()
_repr.maxstring = _MAX_STRING
_repr.maxother = _MAX_STRING
_repr.maxlong = _MAX_STRING


def quoted(value: object) -> str:
    """Returns the value in Python notation, truncated: strings in the middle, deep and long collections at the end.

    Nested collections of short values can still be long, so the result is truncated as a whole too.
    """
    # repr() escapes line breaks and control characters, so a value cannot forge a log line.
    text = _repr.repr(value)
    return text if len(text) <= _MAX_TOTAL else f"{text[: _MAX_TOTAL - 3]}..."


def summarized(values: Sequence[object]) -> str:
    """Returns the first values, unquoted, and how many more there are."""
    more = [f"and {len(values) - _MAX_LISTED} more"] if len(values) > _MAX_LISTED else []
    return ", ".join([*map(str, values[:_MAX_LISTED]), *more])
