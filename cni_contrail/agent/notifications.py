"""Pending notifications: detach notifications that could not reach the agent, kept as files and resent by later calls.

Each names the container that it is about, so that it may arrive late: our agent releases only what that container still
owns. The Contrail vrouter agent knows no owners, so for it a notification is dropped if the VM has port files again.

A call holds the lock of one notification while it sends it, never one of all: an agent that does not answer must not
keep other calls from storing theirs. A notification that is stored already is not replaced, so that whoever holds its
lock holds the only one.

Only a status 4xx drops a notification, since the agent would reject it again. After any other error, such as a full
disk, or without an answer in time, it is kept and postponed on its own, so that it does not block those behind it. If
the agent cannot be reached, none is postponed: it may be back at the next call.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os

from cni_contrail.agent.client import AgentClient
from cni_contrail.agent.postponement import is_due, postpone
from cni_contrail.deadline import Deadline
from cni_contrail.errors import PluginError, RejectedError, TryAgainError, UnreachableError
from cni_contrail.link.named_tuple import NamedTuple, known_fields
from cni_contrail.log import Log
from cni_contrail.state.files import (
    create_atomically,
    file_name,
    list_names,
    read_if_exists,
    remove_if_exists,
    remove_old_partial_files,
)
from cni_contrail.state.lock import locked_file
from cni_contrail.state.port_files import PortFiles

_MAX_PENDING = 4096
_BATCH_SIZE = 16
_BATCH_TIMEOUT = 1.0  # seconds
_SEND_ALL_TIMEOUT = 10.0
_SEND_TIMEOUT = 2.0  # seconds for one
_LOCK_TIMEOUT = 3.0  # seconds; longer than sending one
_PARTIAL_AGE = 60.0  # seconds after which a partial file is that of a killed call
_SUFFIX = ".json"


class Notification(NamedTuple):
    """The container no longer owns this interface of the VM, or with an empty `interface` any of them.

    `port_directory`: for the Contrail vrouter agent the directory of the VM's port files; empty for our agent.
    """

    container_id: str
    vm_uuid: str
    interface: str
    port_directory: str

    @property
    def name(self) -> str:
        """Name of its file."""
        return f"{file_name(self.container_id)}.{self.interface or self.vm_uuid}{_SUFFIX}"


class PendingNotifications:
    """The pending notifications of one node, below its `state-dir`."""

    def __init__(self, state_dir: str, log: Log) -> None:
        self._directory = f"{state_dir}/.pending"
        self._log = log

    def notify(self, agent: AgentClient, notification: Notification, timeout: float) -> None:
        """Sends the notification within `timeout` (seconds), then a batch of pending ones; enqueues it on failure.

        Never fails: a notification that can neither be sent nor stored is logged.
        """
        try:
            _send(agent, notification, Deadline(timeout))
            self.send_batch(agent)
        except PluginError as error:
            if _is_final(error):
                self._log.error(f"dropping a notification: {error.message}")
                return
            self._log.warning(f"{error.message}: the notification is retried later")
            self.enqueue(notification)

    def discard(self, container_id: str) -> None:
        """Drops the pending notifications about a container that is attached again.

        Raises `TryAgainError` if another call is sending them.
        """
        deadline = Deadline(_LOCK_TIMEOUT)
        for name in self._names():
            # Container IDs may contain dots, so the prefix of the name alone does not identify the container.
            if not name.startswith(f"{file_name(container_id)}."):
                continue
            path = os.path.join(self._directory, name)
            with locked_file(path, deadline.remaining) as exists:
                notification = _read(path) if exists else None
                if notification is not None and notification.container_id == container_id:
                    remove_if_exists(path)
                    self._remove_if_empty()

    def send_batch(self, agent: AgentClient) -> None:
        """Sends up to 16 pending notifications within 1 s, except those that other calls are sending; never fails.

        Those that the agent did not accept wait until they are due.
        """
        self._send_pending(_BATCH_SIZE, agent, _BATCH_TIMEOUT)

    def send_all(self, agent: AgentClient) -> None:
        """Sends all that are due within 10 s, as `send_batch`."""
        self._send_pending(_MAX_PENDING, agent, _SEND_ALL_TIMEOUT)

    def count(self) -> int:
        """Returns the number of pending notifications."""
        return len(self._names())

    def enqueue(self, notification: Notification) -> None:
        """Stores the notification for a later call to send; never fails: one that cannot be stored is logged."""
        try:
            if self.count() >= _MAX_PENDING:
                self._log.error(
                    f"{self._directory}: full, {_MAX_PENDING} notifications are pending: dropping a notification"
                )
                return
            create_atomically(os.path.join(self._directory, notification.name), _encode(notification))
        except PluginError as error:
            self._log.error(f"dropping a notification: {error.message}")

    def _names(self) -> list[str]:
        return [name for name in list_names(self._directory) if name.endswith(_SUFFIX)]

    def _send_pending(self, number: int, agent: AgentClient, seconds: float) -> None:
        with contextlib.suppress(PluginError):
            names = self._names()
            if not names:
                return
            deadline = Deadline(seconds)
            paths = (os.path.join(self._directory, name) for name in names)
            failures = []
            for path in itertools.islice(filter(is_due, paths), number):
                failures += self._send_unless_locked(agent, path, deadline)
            if failures:  # one line: there may be thousands
                self._log.warning(f"{failures[0]}: {len(failures)} notifications are retried later")
            remove_old_partial_files(self._directory, _PARTIAL_AGE)
            self._remove_if_empty()

    def _send_unless_locked(self, agent: AgentClient, path: str, deadline: Deadline) -> list[str]:
        """Returns why the notification is postponed, if it is."""
        with contextlib.ExitStack() as held:
            try:
                exists = held.enter_context(locked_file(path, timeout=0))
            except TryAgainError:
                return []  # another call is sending it
            return self._send_one(agent, path, Deadline(min(_SEND_TIMEOUT, deadline.remaining))) if exists else []

    def _send_one(self, agent: AgentClient, path: str, deadline: Deadline) -> list[str]:
        notification = _read(path)
        try:
            if notification is not None:
                _send(agent, notification, deadline)
        except UnreachableError as error:
            # The batch ends in any case. If the agent is stuck on this one alone, the next batch begins with another.
            if error.was_sent:
                _postpone(path)
            raise
        except PluginError as error:
            if not _is_final(error):
                _postpone(path)
                return [error.message]
            self._log.error(f"dropping a notification: {error.message}")
        remove_if_exists(path)
        return []

    def _remove_if_empty(self) -> None:
        with contextlib.suppress(OSError):
            os.rmdir(self._directory)


def _read(path: str) -> Notification | None:
    """Returns the notification in a file, None if the file is malformed."""
    try:
        return _decode(read_if_exists(path) or b"")
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def _encode(notification: Notification) -> bytes:
    document = notification._asdict()
    document["machine"] = document.pop("vm_uuid")  # the key in the file
    return json.dumps(document).encode()


def _decode(content: bytes) -> Notification:
    document = json.loads(content)
    document["vm_uuid"] = document.pop("machine")
    notification = Notification(**known_fields(Notification, document))
    if not all(isinstance(value, str) for value in notification):
        raise ValueError("all values of a notification are strings")
    return notification


def _is_final(error: PluginError) -> bool:
    return isinstance(error, RejectedError) and error.is_final


def _postpone(path: str) -> None:
    with contextlib.suppress(OSError):  # then it is tried again at once
        postpone(path)


def _send(agent: AgentClient, notification: Notification, deadline: Deadline) -> None:
    if notification.port_directory and PortFiles(notification.port_directory).of_vm(notification.vm_uuid):
        return  # the VM has ports again: an unplug would remove all of them
    agent.unplug(notification.vm_uuid, notification.interface, notification.container_id, deadline)
