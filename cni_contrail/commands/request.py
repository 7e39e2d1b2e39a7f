"""A checked call about one attachment, with everything that a command knows before it changes anything."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager

from cni_contrail.commands.node import NodeServices
from cni_contrail.errors import Code, PluginError
from cni_contrail.link.errors import NetnsError
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.netns import is_own_netns
from cni_contrail.pod import PodIdentity, virtual_machine_name
from cni_contrail.protocol.environment import Call
from cni_contrail.protocol.netconf import NetworkConfig
from cni_contrail.quoting import cut
from cni_contrail.sandbox import Sandbox
from cni_contrail.state.port_files import PortFiles

LOCK_TIMEOUT = 10.0  # seconds that a call waits for another call of the same container


class Request(NamedTuple):
    """One checked call."""

    call: Call
    config: NetworkConfig
    pod: PodIdentity
    node: NodeServices

    @property
    def is_thick(self) -> bool:
        """Whether the call is for all interfaces of the pod."""
        return self.node.settings.is_thick(self.config.name)

    @property
    def virtual_machine_name(self) -> str:
        """Name of the pod's VirtualMachine."""
        return virtual_machine_name(self.node.settings.cluster_name, self.pod)

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox at CNI_NETNS, opened by the shim or not yet opened."""
        return self.node.context.sandbox(self.call.netns)

    @property
    def port_files(self) -> PortFiles:
        """The pod's port files, which a Contrail vrouter agent reads."""
        return self.node.port_files(self.virtual_machine_name)

    def locked(self) -> AbstractContextManager[None]:
        """Holds the container's lock; raises `TryAgainError` if another call holds it for over LOCK_TIMEOUT."""
        return self.node.attachments.lock(self.call.container_id, LOCK_TIMEOUT)


@contextlib.contextmanager
def open_sandbox(request: Request) -> Iterator[int]:
    """Opens CNI_NETNS and yields its descriptor.

    Raises `PluginError` with code 4 if it is no network namespace, 8 if it is the plugin's own one. That is checked
    before anything changes there; the reference library checks it only afterwards.
    """
    try:
        netns = request.sandbox.open()
    except NetnsError as error:
        raise PluginError(Code.INVALID_ENVIRONMENT, f"CNI_NETNS: {error}") from error
    try:
        if is_own_netns(netns) and not request.call.own_netns_allowed:
            path = cut(request.call.netns)
            raise PluginError(Code.OWN_NETNS, f"CNI_NETNS: {path} is the plugin's own network namespace")
        yield netns
    finally:
        os.close(netns)
