"""Operations of plans of uplinks, and their execution: in the network's namespace, and in the node's."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Mapping, Sequence
from types import TracebackType

from cni_contrail.datapath import uplink_rules
from cni_contrail.datapath.kernel_settings import write_settings
from cni_contrail.datapath.missing_modules import commit, open_filters
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.message import NetlinkRequest
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.netns import InNetns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

NODE, NETWORK = "node", "network"
"""Namespaces in which an operation may be."""


class Requests(NamedTuple):
    """rtnetlink requests; one that fails ends the plan."""

    place: str
    requests: tuple[NetlinkRequest, ...]

    def changes(self) -> int:
        """Returns the number of changes."""
        return len(self.requests)


class Removal(NamedTuple):
    """Deletion of a link, which may be gone by then."""

    place: str
    request: NetlinkRequest

    def changes(self) -> int:
        """Returns the number of changes."""
        return 1


class Rules(NamedTuple):
    """Requests that change the network's table, as one transaction."""

    requests: Sequence[NetlinkRequest]

    def changes(self) -> int:
        """Returns the number of changes."""
        return 1


class Settings(NamedTuple):
    """Kernel settings by key, in their order."""

    place: str
    values: Mapping[str, str]

    def changes(self) -> int:
        """Returns the number of changes."""
        return len(self.values)


Operation = Requests | Removal | Rules | Settings


class Executor:
    """Executes operations on the uplink of the network in the namespace `netns`. The calling thread is in the node's.

    Use as a context manager. Raises LinkError.
    """

    def __init__(self, netns: int, sysctl_dir: str) -> None:
        self._netns = netns
        self._sysctl_dir = sysctl_dir
        with contextlib.ExitStack() as stack:
            self.node = stack.enter_context(RouteSocket())
            with InNetns(netns):
                self.network, self.filters = stack.enter_context(RouteSocket()), stack.enter_context(open_filters())
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def execute(self, operations: Sequence[Operation]) -> int:
        """Executes the operations in their order; returns the number of changes."""
        for operation in operations:
            self._execute(operation)
        return sum(operation.changes() for operation in operations)

    def _execute(self, operation: Operation) -> None:
        match operation:
            case Requests(place, requests):
                self._socket(place).execute_all(requests)
            case Removal(place, request):
                for error in self._socket(place).execute([request]).values():
                    if error.errno != errno.ENODEV:
                        raise error
            case Rules(requests):
                commit(self.filters, requests, uplink_rules.MODULES)
            case Settings(place, values):
                self._write(place, values)

    def _socket(self, place: str) -> RouteSocket:
        return self.node if place == NODE else self.network

    def _write(self, place: str, values: Mapping[str, str]) -> None:
        if place == NODE:
            write_settings(self._sysctl_dir, values)
        else:
            with InNetns(self._netns):
                write_settings(self._sysctl_dir, values)
