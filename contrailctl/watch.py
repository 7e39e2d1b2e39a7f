"""`contrailctl get networks|pods|events --watch`: the list, then a row or document for each change, as kubectl.

What is known is kept, so that after a broken connection only differences are printed, also if the manager sends the
whole state again. A deleted object is printed in its last state.
"""

import argparse
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from contrail_config.objects import Event
from contrailctl.endpoint import Endpoint
from contrailctl.errors import ContrailctlError, ResponseError
from contrailctl.get import (
    EVENT_HEADER,
    NETWORK_HEADER,
    POD_HEADER,
    event_row,
    network_row,
    not_found,
    pod_row,
)
from contrailctl.output import Output, render
from contrailctl.table import GrowingTable, printable
from contrailctl.watch_stream import WatchStream
from manager.api.types import NetworkView, PodView, WatchedKind, WatchMessage, WatchMessageType

_MAX_EVENTS = 50_000
"""Events that are remembered: they expire without a message."""


class _Kind(NamedTuple):
    singular: str
    view: type[Any]
    header: Sequence[str]
    row: Callable[[Any], Sequence[str]]
    key: Callable[[Any], Hashable]


_KINDS = {
    WatchedKind.NETWORKS: _Kind("network", NetworkView, NETWORK_HEADER, network_row, lambda view: view.network.uuid),
    WatchedKind.PODS: _Kind("pod", PodView, POD_HEADER, pod_row, lambda view: (view.namespace, view.name)),
    WatchedKind.EVENTS: _Kind(
        "events of",
        Event,
        EVENT_HEADER,
        event_row,
        lambda event: (event.kind, event.namespace, event.name, event.uid, event.type, event.reason, event.message),
    ),
}


class _ChangeType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


_Change = tuple[_ChangeType, Any]


def watch(endpoint: Endpoint, arguments: argparse.Namespace) -> None:
    """Prints until it is interrupted. Raises ContrailctlError, and BrokenPipeError if nobody reads the output."""
    kind = WatchedKind(arguments.kind)
    stream = WatchStream(endpoint, kind, namespace=arguments.namespace, name=arguments.name, on_failure=_report_failure)
    known = _KnownObjects(kind)
    printer = _Printer(_KINDS[kind], arguments)
    is_first = True
    for message in stream.messages():
        changes = known.take(message)
        if message.type is WatchMessageType.SYNCED and is_first:
            is_first = False
            if arguments.name is not None and not changes:
                raise not_found(_KINDS[kind].singular, arguments)
            if kind is WatchedKind.EVENTS:
                changes.sort(key=lambda change: change[1].last_seen)
            printer.print(changes)
        elif changes:
            printer.print(changes)


class _KnownObjects:
    """The objects as they were last printed, and those of a state that is not complete yet."""

    def __init__(self, kind: WatchedKind) -> None:
        self._kind = kind
        self._key, self._view = _KINDS[kind].key, _KINDS[kind].view
        self._objects: OrderedDict[Hashable, Any] = OrderedDict()
        self._state: dict[Hashable, Any] | None = None

    def take(self, message: WatchMessage) -> list[_Change]:
        """Returns what the message changes."""
        if message.type is WatchMessageType.RESET:
            self._state = {}
        elif message.type is WatchMessageType.SYNCED:
            state, self._state = self._state or {}, None
            return self._replace(state)
        elif message.type in (WatchMessageType.APPLIED, WatchMessageType.DELETED):
            view = self._decoded(message)
            key = self._key(view)
            if self._state is not None:
                self._state[key] = view
            elif message.type is WatchMessageType.APPLIED:
                return self._apply(key, view)
            elif (last := self._objects.pop(key, None)) is not None:
                return [(_ChangeType.DELETED, last)]
        return []

    def _replace(self, state: dict[Hashable, Any]) -> list[_Change]:
        gone = [key for key in self._objects if key not in state]
        changes = [(_ChangeType.DELETED, self._objects.pop(key)) for key in gone]
        if self._kind is WatchedKind.EVENTS:
            changes = []  # expired
        return changes + [change for key, view in state.items() for change in self._apply(key, view)]

    def _apply(self, key: Hashable, view: Any) -> list[_Change]:
        last = self._objects.get(key)
        if last == view:
            return []
        self._objects[key] = view
        if self._kind is WatchedKind.EVENTS and len(self._objects) > _MAX_EVENTS:
            self._objects.popitem(last=False)
        return [(_ChangeType.ADDED if last is None else _ChangeType.MODIFIED, view)]

    def _decoded(self, message: WatchMessage) -> Any:
        try:
            return msgspec.json.decode(message.object, type=self._view)
        except msgspec.DecodeError as error:
            raise ResponseError(f"invalid {self._kind.value}, or a manager of another version: {error}") from error


class _Printer:
    """Prints changes as rows of one table, or each as a document of its own: JSON in one line."""

    def __init__(self, kind: _Kind, arguments: argparse.Namespace) -> None:
        self._kind = kind
        self._format: str = arguments.output
        self._with_type: bool = arguments.output_watch_events
        self._table = GrowingTable((*(("EVENT",) if self._with_type else ()), *kind.header))

    def print(self, changes: Sequence[_Change]) -> None:
        """Prints the changes in order; the first time also the header of the table."""
        if self._format == "table":
            rows = [(*((change.value,) if self._with_type else ()), *self._kind.row(view)) for change, view in changes]
            self._write(self._table.text(rows))
            return
        for change, view in changes:
            document = {"type": change, "object": view} if self._with_type else view
            if self._format == "json":
                self._write(msgspec.json.encode(document).decode())
            else:
                self._write(f"---\n{render(Output('', document), self._format)}")

    def _write(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def _report_failure(error: ContrailctlError) -> None:
    sys.stderr.write(f"contrailctl: {printable(str(error))}; connecting again\n")
    sys.stderr.flush()
