"""Items of all pages of a list of the manager's API."""

from collections.abc import Callable
from typing import Any


def every_item(get: Callable[[str], Any], path: str) -> list[dict[str, Any]] | None:
    """Returns the items, None if `get` returns no answer. A manager of an older version has only one page."""
    items: list[dict[str, Any]] = []
    following = ""
    while (answer := get(path + following)) is not None:
        items += answer["items"]
        if "continue" not in answer:
            return items
        following = f"{'&' if '?' in path else '?'}continue={answer['continue']}"
    return None
