"""Rehearsal of a follower: names a kernel module that is missing before the first pod needs it.

The daemon does not exit for it: it learns the kind of datapath from the agent, when calls may be in progress, and pods
must be deleted on such a node, too. An operator who loads the module need not restart it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from cni_contrail.datapath.desired import Masquerade
from cni_contrail.datapath.missing_modules import MISSING

Rehearse = Callable[[Masquerade | None], str]
"""Returns what the datapath with this masquerade fails with for lack of a kernel module, empty if there is nothing."""

_NAMED = re.compile(rf"{MISSING}([a-z0-9_]+) is missing: ")


def nothing_is_missing(_masquerade: Masquerade | None) -> str:
    """The rehearsal of a process that had one before it began to follow."""
    return ""


class Rehearsal:
    """Rehearses until it succeeds once; `problem` is empty then, and before the first time."""

    def __init__(self, rehearse: Rehearse) -> None:
        self._rehearse = rehearse
        self._has_succeeded = False
        self.problem = ""

    def repeat(self, masquerade: Masquerade | None) -> None:
        """Rehearses unless that has succeeded already."""
        if not self._has_succeeded:
            self.problem = self._rehearse(masquerade)
            self._has_succeeded = not self.problem


def named_modules(problems: Iterable[str]) -> list[str]:
    """Returns the kernel modules that problems name as missing, in alphabetical order."""
    return sorted({module for problem in problems for module in _NAMED.findall(problem)})
