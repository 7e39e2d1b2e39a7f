"""A checked call about one attachment, with everything that a command knows before it changes anything."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from types import TracebackType

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


class OpenSandbox:
    """Opens CNI_NETNS while a `with` block runs, and returns its descriptor.

    Raises `PluginError` with code 4 if it is no network namespace, 8 if it is the plugin's own one. That is checked
    before anything changes there; the reference library checks it only afterwards.
    """

    __slots__ = ("_netns", "_request")

    def __init__(self, request: Request) -> None:
        self._request = request

    def __enter__(self) -> int:
        call = self._request.call
        try:
            self._netns = self._request.sandbox.open()
        except NetnsError as error:
            raise PluginError(Code.INVALID_ENVIRONMENT, f"CNI_NETNS: {error}") from error
        if is_own_netns(self._netns) and not call.own_netns_allowed:
            os.close(self._netns)
            path = cut(call.netns)
            raise PluginError(Code.OWN_NETNS, f"CNI_NETNS: {path} is the plugin's own network namespace")
        return self._netns

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._netns)
