"""Syntax of label selectors, as in Kubernetes: requirements separated by commas, all of which must hold."""

import re
from typing import Any, Final

from manager.parsing.errors import BadValueError
from manager.parsing.quoting import quoted

_NAME: Final = "[A-Za-z0-9](?:[-._A-Za-z0-9]{0,61}[A-Za-z0-9])?"
_PREFIX: Final = "[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?"
_KEY: Final = f"(?:{_PREFIX}/)?{_NAME}"
_VALUE: Final = f"(?:{_NAME})?"
_EQUALITY: Final = rf"\s*(?:==|=|!=)\s*{_VALUE}"
_SET: Final = rf"\s+(?:in|notin)\s*\(\s*{_VALUE}(?:\s*,\s*{_VALUE})*\s*\)"
_REQUIREMENT: Final = rf"\s*(?:!\s*{_KEY}|{_KEY}(?:{_EQUALITY}|{_SET})?)\s*"
_SELECTOR: Final = re.compile(rf"{_REQUIREMENT}(?:,{_REQUIREMENT})*|\s*")


def label_selector(value: Any) -> str:
    """Returns the selector, which selects everything if it is empty. Raises BadValueError."""
    if not isinstance(value, str) or _SELECTOR.fullmatch(value) is None:
        raise BadValueError(f"{quoted(str(value))} is not a label selector")
    return value.strip()
