"""All that a command knows about its call before it does anything."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager

from cni_contrail.agent.client import Agent, agent_of
from cni_contrail.agent.notifications import PendingNotifications
from cni_contrail.errors import Code, PluginError
from cni_contrail.journal import Journal
from cni_contrail.link.errors import NetnsError
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.netns import is_own_netns, open_netns
from cni_contrail.pod import Pod, machine_name
from cni_contrail.protocol.environment import Call
from cni_contrail.protocol.netconf import NetworkConfig
from cni_contrail.settings import Settings
from cni_contrail.state.attachments import Attachments
from cni_contrail.state.port_files import PortFiles

LOCK_PATIENCE = 10.0  # seconds that a call waits for another call of the same container


class Request(NamedTuple):
    """One call, checked, with its settings; the properties are the parts that it works with."""

    call: Call
    config: NetworkConfig
    settings: Settings
    pod: Pod
    journal: Journal

    @property
    def is_thick(self) -> bool:
        """Whether the call is for all interfaces of the pod."""
        return self.settings.is_thick(self.config.name)

    @property
    def machine_name(self) -> str:
        """Name of the pod's virtual machine."""
        return machine_name(self.settings.cluster_name, self.pod)

    @property
    def agent(self) -> Agent:
        """The agent of this node."""
        return agent_of(self.settings)

    @property
    def attachments(self) -> Attachments:
        """The records of this node."""
        return Attachments(self.settings.state_dir, self.journal)

    @property
    def pending(self) -> PendingNotifications:
        """What the agent still has to be told."""
        return PendingNotifications(self.settings.state_dir, self.journal)

    @property
    def port_files(self) -> PortFiles:
        """Upstream's files of the pod's ports."""
        return PortFiles(self.settings.config_dir, self.machine_name)

    def locked(self) -> AbstractContextManager[None]:
        """Holds the container's lock; raises `TryAgainError` if another call has held it for too long."""
        return self.attachments.lock(self.call.container_id, LOCK_PATIENCE)


@contextlib.contextmanager
def open_sandbox(call: Call) -> Iterator[int]:
    """Opens CNI_NETNS and yields its descriptor.

    Raises `PluginError` with code 4 if it is no network namespace, 8 if it is the one that the plugin itself is in:
    before anything is touched there, where the reference library looks only afterwards.
    """
    try:
        netns = open_netns(call.netns)
    except NetnsError as error:
        raise PluginError(Code.INVALID_ENVIRONMENT, f"CNI_NETNS: {error}") from error
    try:
        if is_own_netns(netns) and not call.own_netns_allowed:
            raise PluginError(Code.OWN_NETNS, f"CNI_NETNS {call.netns} is the network namespace of the plugin itself")
        yield netns
    finally:
        os.close(netns)
