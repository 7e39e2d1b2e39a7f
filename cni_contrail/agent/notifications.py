"""Notifications that the agent was not there for: kept as files, and sent again by later calls that find it there.

Each is bound to the container that it is about, so that it can come late without harm: our agent frees only what that
container still owns, and towards a stock agent, which knows no owners, it waits until no port file of the VM is left.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator

from cni_contrail.agent.client import AgentClient
from cni_contrail.deadline import Deadline
from cni_contrail.errors import PluginError, TryAgainError
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.log import Log
from cni_contrail.state.files import (
    file_name,
    list_names,
    read_if_exists,
    remove_if_exists,
    remove_partial_files,
    write_atomically,
)
from cni_contrail.state.lock import locked_directory

_MOST_KEPT = 4096
_SENT_AT_ONCE = 16
_LONGEST_SENDING = 1.0  # seconds
_LONGEST_SENDING_OF_ALL = 10.0
_LOCK_PATIENCE = 3.0  # seconds; longer than one sending


class Notification(NamedTuple):
    """An interface, or with an empty `interface` all of the VM, is no longer the container's.

    `port_directory`: where the port files of the VM lie that a stock agent must outlive; empty for ours.
    """

    container_id: str
    machine: str
    interface: str
    port_directory: str

    @property
    def name(self) -> str:
        """Of the file that keeps it."""
        return f"{file_name(self.container_id)}.{self.interface or self.machine}.json"


class PendingNotifications:
    """The queue of one node, below its `state-dir`."""

    def __init__(self, state_dir: str, journal: Log) -> None:
        self._directory = os.path.join(state_dir, ".pending")
        self._journal = journal

    def notify(self, agent: AgentClient, notification: Notification, patience: float) -> None:
        """Tells the agent within `patience` (seconds), and what was kept too; or keeps it for later.

        Never fails: what can neither be told nor kept is logged.
        """
        try:
            _send(agent, notification, Deadline(patience))
            self.send_batch(agent)
        except TryAgainError as error:
            self._journal.warning(f"{error.message}: it is told later")
            self.keep(notification)
        except PluginError as error:
            self._journal.error(error.message)

    def forget(self, container_id: str) -> None:
        """Drops what is kept about a container that is attached again; raises `TryAgainError` while it is sent."""
        mine = [name for name in list_names(self._directory) if name.startswith(f"{file_name(container_id)}.")]
        if not mine:
            return
        with self._locked(_LOCK_PATIENCE):
            for notification in self._read(mine):
                if notification.container_id == container_id:
                    self._drop(notification)

    def send_batch(self, agent: AgentClient) -> None:
        """Sends what is kept, within bounds of number and time, if no other call is at it; never fails."""
        self._send_first(_SENT_AT_ONCE, agent, _LONGEST_SENDING)

    def send_all(self, agent: AgentClient) -> None:
        """Sends all that is kept, if no other call is at it and the agent answers within 10 s; never fails."""
        self._send_first(_MOST_KEPT, agent, _LONGEST_SENDING_OF_ALL)

    def count(self) -> int:
        """How many are kept."""
        return len(list_names(self._directory))

    def keep(self, notification: Notification) -> None:
        """Keeps it for a later call to send; never fails: what cannot be kept is logged."""
        try:
            if len(list_names(self._directory)) >= _MOST_KEPT:
                self._journal.error(f"{self._directory} holds {_MOST_KEPT} notifications: this one is lost")
                return
            with self._locked(_LOCK_PATIENCE):
                content = json.dumps(notification._asdict()).encode()
                write_atomically(os.path.join(self._directory, notification.name), content)
        except PluginError as error:
            self._journal.error(f"the notification is lost: {error.message}")

    @contextlib.contextmanager
    def _locked(self, patience: float) -> Iterator[None]:
        with locked_directory(self._directory, patience):
            remove_partial_files(self._directory)
            yield

    def _send_first(self, number: int, agent: AgentClient, seconds: float) -> None:
        with contextlib.suppress(PluginError):
            if not list_names(self._directory):
                return
            with self._locked(patience=0):
                deadline = Deadline(seconds)
                for notification in self._read(list_names(self._directory)[:number]):
                    self._send_kept(agent, notification, deadline)

    def _send_kept(self, agent: AgentClient, notification: Notification, deadline: Deadline) -> None:
        try:
            _send(agent, notification, deadline)
        except TryAgainError:
            raise
        except PluginError as error:
            self._journal.error(error.message)
        self._drop(notification)

    def _read(self, names: list[str]) -> Iterator[Notification]:
        for name in names:
            path = os.path.join(self._directory, name)
            try:
                yield _decode(read_if_exists(path) or b"")
            except (ValueError, TypeError, RecursionError):
                remove_if_exists(path)

    def _drop(self, notification: Notification) -> None:
        remove_if_exists(os.path.join(self._directory, notification.name))


def _decode(content: bytes) -> Notification:
    notification = Notification(**json.loads(content))
    if not all(isinstance(value, str) for value in notification):
        raise ValueError("a notification holds text")
    return notification


def _send(agent: AgentClient, notification: Notification, deadline: Deadline) -> None:
    if notification.port_directory and list_names(notification.port_directory):
        return  # the VM has ports here again
    agent.unplug(notification.machine, notification.interface, notification.container_id, deadline)
