"""Interactive shells on a terminal, where a user types a line and TAB."""

import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.cluster_processes import BINARIES

DEADLINE = 30.0  # seconds
TAB = "\t"
_SHOW_LINE = "\x07"
_PROMPT = "ready> "
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x07")
_RUN = "CONTRAIL_TEST_RUN"


class Kind(NamedTuple):
    """How a shell starts without the user's files, and code by which ^G shows the line as `<LINE>` and removes it."""

    command: tuple[str, ...]
    show_line: str


# The quotes in the prompt keep its text out of the echo of the line that sets it.
_SHOWN_PROMPT = f"PS1='{_PROMPT[:3]}''{_PROMPT[3:]}'"
KINDS = {
    "bash": Kind(
        ("bash", "--norc", "--noprofile", "-i"),
        f"""bind -x '"\\C-g": echo "<$READLINE_LINE>"; READLINE_LINE= READLINE_POINT=0'; {_SHOWN_PROMPT}""",
    ),
    "zsh": Kind(
        ("zsh", "-f", "-i"),
        f"""show() {{ zle -I; print -r -- "<$BUFFER>"; BUFFER= }}; zle -N show; bindkey '^G' show; {_SHOWN_PROMPT}""",
    ),
}


def environment(home: Path) -> dict[str, str]:
    """The variables of a shell whose user has this folder as home, and our programs."""
    run = {_RUN: os.environ[_RUN]} if _RUN in os.environ else {}
    return run | {
        "PATH": f"{BINARIES}:{os.environ['PATH']}",
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm",
    }


class InteractiveShell:
    """A shell with a terminal whose keys are those that the test types."""

    def __init__(self, user: int) -> None:
        self._user = user

    def run(self, line: str) -> None:
        """Types a line and Return, and waits for the next prompt."""
        self._type(f"{line}\r")
        self._shown(_PROMPT)

    def completed(self, line: str) -> str:
        """What the line is after TAB; it is not run."""
        return self._keys(line + TAB)[2]

    def listed(self, line: str) -> str:
        """What is shown after TAB is typed twice."""
        return self._keys(line + TAB + TAB)[1]

    def _keys(self, keys: str) -> re.Match[str]:
        """Types what Return does not follow; the match has what is shown, and the line, which is removed."""
        self._type(keys + _SHOW_LINE)
        return self._shown(rf"(?s)^(.*)<([^>]*)>\s*\n.*{_PROMPT}")

    def _type(self, keys: str) -> None:
        os.write(self._user, keys.encode())

    def _shown(self, pattern: str) -> re.Match[str]:
        """Waits until what is shown from now on contains the pattern."""
        give_up = time.monotonic() + DEADLINE
        shown = b""
        while True:
            text = _CONTROL.sub("", shown.decode(errors="replace"))
            if found := re.search(pattern, text):
                return found
            remaining = give_up - time.monotonic()
            assert remaining > 0, f"{pattern} not shown: {text!r}"
            if select.select([self._user], [], [], remaining)[0]:
                shown += os.read(self._user, 4096)


@contextmanager
def interactive_shell(name: str, home: Path) -> Iterator[InteractiveShell]:
    """Yields a shell that has just started; it ends with the block, as if its terminal were closed."""
    user, terminal = pty.openpty()
    kind = KINDS[name]
    process = subprocess.Popen(
        ["setsid", "--ctty", *kind.command],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        cwd=home,
        env=environment(home),
    )
    os.close(terminal)
    try:
        shell = InteractiveShell(user)
        shell.run(kind.show_line)
        yield shell
    finally:
        process.kill()
        process.wait()
        os.close(user)
