"""Formats tables as aligned columns of text.

Nodes and tenants choose what cells say: a control character would steer the operator's terminal, so it is escaped.
"""

from collections.abc import Sequence

_GAP = 3


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns one line per row; columns are as wide as their widest cell, an empty cell is `-`."""
    lines = [list(header), *([printable(cell) or "-" for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(_line(cells, widths) for cells in lines)


def printable(text: str) -> str:
    """Returns the text with a Python escape for each character that is not printable, line breaks among them."""
    return text if text.isprintable() else "".join(each if each.isprintable() else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width + _GAP) for cell, width in zip(cells, widths, strict=True))
    return "".join(padded).rstrip()
