"""Colours of states in tables: only on a terminal, and never with NO_COLOR (https://no-color.org)."""

import re
from collections.abc import Mapping
from typing import TextIO

_GREEN, _YELLOW, _RED = "32", "33", "31"
_COLOURS = {
    **dict.fromkeys(("Ready", "Leader"), _GREEN),
    **dict.fromkeys(("Waiting", "Silent"), _YELLOW),
    **dict.fromkeys(
        ("NotReady", "Unreachable", "Refused", "Missing", "CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull"), _RED
    ),
}
# Whole cells only: what tenants write in other places keeps its colour.
_CELL = re.compile(rf"(?:(?<=^)|(?<= {{3}}))({'|'.join(_COLOURS)})(?=$| {{3}})", re.MULTILINE)
_HEADING = re.compile(r"^Problems:$", re.MULTILINE)


def has_colours(stream: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether the stream is a terminal that shows colours, and whose user wants them."""
    return stream.isatty() and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def coloured(text: str) -> str:
    """Returns the text, in which states of tables have colours."""
    text = _HEADING.sub(lambda match: _painted(match[0], _RED), text)
    return _CELL.sub(lambda match: _painted(match[1], _COLOURS[match[1]]), text)


def _painted(text: str, colour: str) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m"
