"""Causes and cures of the reasons why pods wait, as `docs/troubleshooting.md` has them, without its markup.

`python -m tests.support.documented_advice` writes them into the file of the web page.
"""

import json
import re
from pathlib import Path

from tests.support.documentation import ROOT, code, rows

FILE = ROOT / "manager" / "web" / "files" / "advice.json"
_PAGE = "troubleshooting"
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def documented_advice() -> dict[str, dict[str, str]]:
    """By reason."""
    return {
        reason: {"cause": _plain(cause), "cure": _plain(cure)}
        for name, _, cause, cure in rows(_PAGE, "Events on pods")
        for reason in code(name)
        if cure != "Nothing"
    }


def text_of(advice: dict[str, dict[str, str]]) -> str:
    """As the file has it."""
    return json.dumps(advice, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def _plain(markdown: str) -> str:
    return _LINK.sub(r"\1", markdown).replace("`", "")


if __name__ == "__main__":
    Path(FILE).write_text(text_of(documented_advice()))
