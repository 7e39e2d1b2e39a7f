"""What a call has from who carries it out, beside its environment and its input."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from contextlib import AbstractContextManager

from cni_contrail.agent.client import AgentClient, agent_client
from cni_contrail.deadline import NEVER, Interruption
from cni_contrail.log import Log
from cni_contrail.sandbox import Sandbox
from cni_contrail.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ExecutionContext:
    """Those of the entry point, where each call is a process of its own."""

    @property
    def node_settings(self) -> Mapping[str, Any]:
        """Settings for the whole node, over those of the node-wide file, by key."""
        return {}

    @property
    def interruption(self) -> Interruption:
        """What makes an ADD that waits give up."""
        return NEVER

    def make_log(self, path: str = "", level: str = "info") -> Log:
        """Where log lines go."""
        return Log(path, level)

    def sandbox(self, path: str) -> Sandbox:
        """The call's own, at CNI_NETNS."""
        return Sandbox(path)

    def agent(self, settings: Settings) -> AgentClient:
        """The agent of this node."""
        return agent_client(settings)

    def phase(self, name: str) -> AbstractContextManager[None]:  # noqa: ARG002 - the daemon's needs it
        """A part of a call that takes its time: `list`, `make`, `plug`, `remove` or `tell`."""
        return contextlib.nullcontext()

    def deliver(self, result: str) -> None:
        """Gives the result of an ADD to the runtime; raises `PluginError` if it is known that nobody takes it.

        Here it is printed when the call has ended: who starts a process sees that it ended badly.
        """
