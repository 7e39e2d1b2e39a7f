"""The node that a call runs on, as its settings describe it."""

from __future__ import annotations

from contextlib import AbstractContextManager

from cni_contrail.agent.client import AgentClient
from cni_contrail.agent.notifications import Notification, PendingNotifications
from cni_contrail.execution_context import ExecutionContext
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.log import Log
from cni_contrail.settings import Settings
from cni_contrail.state.attachments import Attachments
from cni_contrail.state.port_files import PortFiles

NOTIFY_TIMEOUT = 2.0  # seconds that DEL waits for the agent to take a notification


class NodeServices(NamedTuple):
    """Settings, log and execution context; the properties are the parts that commands work with."""

    settings: Settings
    log: Log
    context: ExecutionContext

    @property
    def agent(self) -> AgentClient:
        """The agent of this node."""
        return self.context.agent(self.settings)

    @property
    def attachments(self) -> Attachments:
        """The records of this node."""
        return Attachments(self.settings.state_dir, self.log)

    @property
    def pending(self) -> PendingNotifications:
        """Notifications that the agent has not received yet."""
        return PendingNotifications(self.settings.state_dir, self.log)

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
