"""Formats tables as aligned columns of text.

Nodes and tenants choose what cells say: a control character would steer the operator's terminal, so it is escaped.
"""

from collections.abc import Sequence

_GAP = 3


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns one line per row; columns are as wide as their widest cell, an empty cell is `-`."""
    return GrowingTable(header).text(rows)


class GrowingTable:
    """A table whose rows come in batches. Columns are never narrower than before, as in the watches of kubectl."""

    def __init__(self, header: Sequence[str]) -> None:
        self._unprinted: list[Sequence[str]] = [header]
        self._widths = [0] * len(header)

    def text(self, rows: Sequence[Sequence[str]]) -> str:
        """Returns one line per row, the first time after the header."""
        lines = [*self._unprinted, *([printable(cell) or "-" for cell in row] for row in rows)]
        self._unprinted = []
        columns = range(len(self._widths))
        self._widths = [max([self._widths[column], *(len(line[column]) for line in lines)]) for column in columns]
        return "\n".join(_line(cells, self._widths) for cells in lines)


def counted(number: int, noun: str) -> str:
    """Returns `1 node`, `2 nodes`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def printable(text: str) -> str:
    """Returns the text with a Python escape for each character that is not printable, line breaks among them."""
    return text if text.isprintable() else "".join(each if each.isprintable() else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width + _GAP) for cell, width in zip(cells, widths, strict=True))
    return "".join(padded).rstrip()
