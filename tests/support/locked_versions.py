"""Versions of the lock file, as constraints of pip: what it would take otherwise changes from day to day."""

import re

from tests.support.documentation import ROOT


def constraints() -> str:
    """The content of a file for `pip install --constraint`: `NAME==VERSION` lines."""
    text = (ROOT / "requirements.lock").read_text()
    return "\n".join(re.findall(r"^[\w.-]+==[^\s;\\]+", text, re.MULTILINE))
