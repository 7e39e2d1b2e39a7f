"""The node that a call runs on, as its settings describe it."""

from __future__ import annotations

from contextlib import AbstractContextManager

from cni_contrail.agent.client import agent_client
from cni_contrail.agent.notifications import Notification, PendingNotifications
from cni_contrail.execution_context import ExecutionContext
from cni_contrail.log import Log
from cni_contrail.settings import Settings
from cni_contrail.state.attachments import Attachments
from cni_contrail.state.port_files import PortFiles

NOTIFY_TIMEOUT = 2.0  # seconds that DEL waits for the agent to take a notification


class NodeServices:
    """Settings, log and execution context of a call, and the parts of the node that commands work with.

    `pending` are notifications that the agent has not received yet.
    """

    def __init__(self, settings: Settings, log: Log, context: ExecutionContext) -> None:
        self.settings = settings
        self.log = log
        self.context = context
        self.agent = agent_client(settings)
        self.attachments = Attachments(settings.state_dir, log)
        self.pending = PendingNotifications(settings.state_dir, log)

    def port_files(self, vm_name: str) -> PortFiles:
        """Returns the port files of a VM."""
        return PortFiles(f"{self.settings.config_dir}/{vm_name}")

    def notify(self, notification: Notification) -> None:
        """Notifies the agent, or queues the notification if the agent is unreachable; never fails."""
        with self.phase("tell"):
            self.pending.notify(self.agent, notification, NOTIFY_TIMEOUT)

    def phase(self, name: str) -> AbstractContextManager[None]:
        """A timed part of the call; see `ExecutionContext.phase`."""
        return self.context.phase(name)
