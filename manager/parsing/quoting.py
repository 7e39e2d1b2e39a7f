"""Values as messages show them: quoted, escaped, and cut, since a user may have written anything, of any size."""

import reprlib

_LONGEST = 120

_shortened = reprlib.Repr()
_shortened.maxstring = _LONGEST
_shortened.maxother = _LONGEST
_shortened.maxlong = _LONGEST


def shown(value: object) -> str:
    """The value in Python's notation; long texts lose their middle, deep and long collections their rest."""
    return _shortened.repr(value)
