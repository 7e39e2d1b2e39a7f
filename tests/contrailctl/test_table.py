"""Columns are as wide as their widest cell, whatever the cells contain."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrailctl.output import Output, render
from contrailctl.table import format_table

CELLS = st.text(st.characters(codec="ascii", exclude_categories=("Cc", "Zs")), max_size=12)
TABLES = st.integers(1, 5).flatmap(
    lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=6)
)


def test_an_empty_cell_is_a_dash_and_lines_have_no_trailing_spaces() -> None:
    assert format_table(("A", "LONG"), [("longer", ""), ("", "x")]) == "A        LONG\nlonger   -\n-        x"


def test_without_rows_the_header_remains() -> None:
    assert format_table(("A", "B"), []) == "A   B"


@pytest.mark.parametrize(
    ("given", "shown"),
    [("\x1b[2J", "\\x1b[2J"), ("a\nb", "a\\nb"), ("\x9b1m", "\\x9b1m"), ("\u202eb", "\\u202eb"), ("ä", "ä")],
)
def test_characters_that_steer_a_terminal_are_escaped(given: str, shown: str) -> None:
    assert format_table(("A",), [(given,)]) == f"A\n{shown}"


def test_texts_beside_tables_are_escaped_line_by_line() -> None:
    assert render(Output("Message: \x1b[2J\r\nMore", None), "table") == "Message: \\x1b[2J\\r\nMore"


@given(TABLES)
def test_each_column_is_aligned(table: list[list[str]]) -> None:
    header, *rows = [[cell or "-" for cell in row] for row in table]
    lines = format_table(header, rows).split("\n")
    assert len(lines) == len(table)
    place = 0
    for column in range(len(header)):
        cells = [row[column] for row in (header, *rows)]
        assert [line[place:].startswith(cell) for line, cell in zip(lines, cells, strict=True)] == [True] * len(cells)
        place += max(map(len, cells)) + 3


@given(TABLES)
def test_cells_can_be_split_again(table: list[list[str]]) -> None:
    header, *rows = table
    read = [line.split() for line in format_table(header, rows).split("\n")]
    assert read[1:] == [[cell or "-" for cell in row] for row in rows]
