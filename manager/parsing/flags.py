"""Annotations that are true or false."""

from manager.parsing.errors import BadValueError
from manager.parsing.quoting import quoted

_FLAGS = {"true": True, "false": False}


def parse_flag(text: str) -> bool:
    """Returns the flag, in any case. Raises BadValueError, also for an empty text, which is likely a mistake."""
    flag = _FLAGS.get(text.strip().lower())
    if flag is None:
        raise BadValueError(f"{quoted(text)} is neither true nor false")
    return flag
