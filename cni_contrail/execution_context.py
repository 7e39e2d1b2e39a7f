"""Execution context of a call, supplied by the entry point or by the daemon: log, sandbox, interruption."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from contextlib import AbstractContextManager

from cni_contrail.deadline import NEVER, Interruption
from cni_contrail.log import Log
from cni_contrail.sandbox import Sandbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cni_contrail.datapath.namespaces import Namespaces


class ExecutionContext:
    """Context in the entry point, where each call is a process of its own."""

    @property
    def node_settings(self) -> Mapping[str, Any]:
        """Settings by key that override those of the node-wide file."""
        return {}

    @property
    def interruption(self) -> Interruption:
        """What cancels an ADD or a STATUS that waits."""
        return NEVER

    def maintains(self, state_dir: str) -> bool:  # noqa: ARG002 - overrides use it
        """Whether orphaned attachments of this directory are swept regularly, as by the daemon."""
        return False

    def make_log(self, path: str = "", level: str = "info") -> Log:
        """Returns a log that writes to the file, or to standard error if `path` is empty."""
        return Log(path, level)

    def sandbox(self, path: str) -> Sandbox:
        """The sandbox at CNI_NETNS."""
        return Sandbox(path)

    def namespaces(self, directory: str) -> Namespaces:
        """The namespaces of networks below the directory, for an ADD."""
        from cni_contrail.datapath.namespaces import Namespaces  # only where a datapath is

        return Namespaces(directory)

    def phase(self, name: str) -> AbstractContextManager[None]:  # noqa: ARG002 - overrides use it
        """A timed part of a call: `list`, `make`, `plug`, `remove` or `tell`. The daemon measures and limits phases."""
        return contextlib.nullcontext()

    def deliver(self, result: str) -> None:
        """Delivers the result of an ADD to the runtime; raises `PluginError` if the runtime is known not to accept it.

        Here this is a no-op: the result is printed at the end, and the runtime sees how the process exits.
        """
