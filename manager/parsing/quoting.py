"""Values as messages show them: quoted, escaped, and cut, since a user may have written anything, of any size."""

import reprlib
from collections.abc import Sequence

_LONGEST = 120
_LONGEST_OF_ALL = 500
_LISTED = 8

_shortened = reprlib.Repr()
_shortened.maxstring = _LONGEST
_shortened.maxother = _LONGEST
_shortened.maxlong = _LONGEST


def quoted(value: object) -> str:
    """The value in Python's notation; long texts lose their middle, deep and long collections their rest.

    Many short values in each other may still be long, and lose their end.
    """
    text = _shortened.repr(value)
    return text if len(text) <= _LONGEST_OF_ALL else f"{text[: _LONGEST_OF_ALL - 3]}..."


def summarized(values: Sequence[object]) -> str:
    """The first of the values, as they are, and how many more there are."""
    more = [f"and {len(values) - _LISTED} more"] if len(values) > _LISTED else []
    return ", ".join([*map(str, values[:_LISTED]), *more])
