"""The tables of the README, to be held against what they tell of."""

from pathlib import Path

_README = (Path(__file__).parents[2] / "README.md").read_text()


def rows(section: str) -> list[list[str]]:
    """The cells of a section's table, without the line under the heads."""
    text = _README.split(f"### {section}\n")[1].split("\n#")[0]
    lines = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
