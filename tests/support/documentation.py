"""Pages and tables below `docs/`, for tests that compare them with the code."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs"

_HEADING = re.compile(r"^(#+) (.*)$")


def page(name: str) -> str:
    """The text of a page, such as `configuration`."""
    return (PAGES / f"{name}.md").read_text()


def section(name: str, heading: str) -> str:
    """The text of a section up to the next heading of any level."""
    lines = page(name).splitlines()
    found = [number for number, line in enumerate(lines) if _title(line) == heading]
    assert len(found) == 1, f"{name}.md has {len(found)} headings {heading!r}"
    return "\n".join(_until_heading(lines[found[0] + 1 :]))


def table(name: str, heading: str) -> list[list[str]]:
    """The cells of the first table in a section, header row included."""
    lines = [line for line in section(name, heading).splitlines() if line.startswith("|")]
    return [_cells(line) for line in lines if not line.startswith("|---")]


def rows(name: str, heading: str) -> list[list[str]]:
    """`table` without the header row."""
    return table(name, heading)[1:]


def blocks(name: str, *, language: str = "") -> list[str]:
    """The fenced blocks of a language on a page; without one, commands."""
    fenced: list[tuple[str, str]] = re.findall(r"^```(\w*)\n(.*?)^```$", page(name), re.MULTILINE | re.DOTALL)
    return [text for found, text in fenced if found == language]


def block(name: str, beginning: str, *, language: str = "") -> str:
    """The one of `blocks` that begins so."""
    (found,) = (each for each in blocks(name, language=language) if each.startswith(beginning))
    return found


def code(text: str) -> list[str]:
    """All code spans (single backticks)."""
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def _until_heading(lines: list[str]) -> Iterator[str]:
    fenced = False
    for line in lines:
        fenced ^= line.lstrip().startswith("```")
        if not fenced and _title(line):
            return
        yield line


def _title(line: str) -> str:
    match = _HEADING.match(line)
    return match[2] if match else ""
