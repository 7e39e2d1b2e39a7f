"""Handler of received requests: queues each call, runs it and responds.

An ADD whose shim has hung up before the call begins is dropped: it would be made whole and undone. A DEL is never
dropped: what it removes is not needed any more, and the runtime's next DEL has less to do.

A configuration may be that of a tenant, 1 MiB long, and take 30 times as much memory when it is decoded. So calls with
large ones have a queue of their own, with few slots, which they keep while they wait.
"""

from __future__ import annotations

import contextlib
import functools
import os
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

from cni_contrail.daemon.call_queue import CallQueue, SlotKeepingQueue
from cni_contrail.daemon.cancellation import CancellableCalls, Cancellation
from cni_contrail.daemon.execution_context import CallContext, DaemonContext
from cni_contrail.daemon.metrics import MeasuredCall
from cni_contrail.daemon.protocol import ShimRequest
from cni_contrail.daemon.shim_connection import ShimConnection
from cni_contrail.daemon.workers import Work
from cni_contrail.deadline import NEVER, Interruption
from cni_contrail.errors import PluginError, TryAgainError
from cni_contrail.node_file import NODE_FILE_VARIABLE
from cni_contrail.plugin import CommandOutput, error_output, respond

# Calls of one kind never wait for those of another. ADDs work in the interpreter, or create links, which the kernel
# does one at a time under its rtnl lock: more of them would only contend. A DEL mostly waits for an RCU grace period of
# the kernel, which many calls can share.
_SLOTS = {"ADD": 4, "DEL": 16}
_OTHER_SLOTS = 4
_MAX_CALLS = 512  # ADDs, and as many DELs
_MAX_OTHERS = 128
_LARGE = 16 * 1024  # bytes of a configuration; most have less than 1 KiB
_LARGE_SLOTS = 4
_MAX_LARGE = 64


class ReceivedCall(NamedTuple):
    """An acknowledged call, which holds its connection and the descriptor of its cancellation."""

    connection: ShimConnection
    request: ShimRequest
    interruption: Interruption
    measured: MeasuredCall


class ConnectionHandler:
    """Runs each call in a thread of `run`."""

    def __init__(self, context: DaemonContext, run: Callable[[Work], None]) -> None:
        self.cancellable = CancellableCalls()
        self._context = context
        # The shim sends CNI_ variables only: which node-wide file is read is up to the daemon's own environment.
        self._environment = {key: value for key, value in os.environ.items() if key == NODE_FILE_VARIABLE}
        self._queues = {
            command: CallQueue(run, f"{command}s", slots=slots, limit=_MAX_CALLS) for command, slots in _SLOTS.items()
        }
        self._other_queue = CallQueue(run, "calls", slots=_OTHER_SLOTS, limit=_MAX_OTHERS)
        self._large_queue = SlotKeepingQueue(
            run, "calls with a large configuration", slots=_LARGE_SLOTS, limit=_MAX_LARGE
        )

    def receive(
        self, connection: ShimConnection, request: ShimRequest, run: Callable[[Work], None] | None = None
    ) -> None:
        """Queues a request that was acknowledged; the connection is closed when it has the response.

        Never waits, unless `run` runs calls in the calling thread.
        """
        call = self._call(connection, request)
        try:
            self._queue(request).submit(functools.partial(self._guard, self._serve, call), run)
        except TryAgainError as error:
            self._queue_error(functools.partial(self._guard, self._refuse, call, error), lambda: self._end(call))

    def reject(self, connection: ShimConnection, error: PluginError) -> None:
        """Queues the response to a request that was not read whole. Never waits."""
        self._queue_error(functools.partial(self._guard, self._reject, connection, error), connection.close)

    def _queue(self, request: ShimRequest) -> CallQueue:
        # The list of GC is long on a busy node, and the runtime's own.
        if len(request.input) > _LARGE and request.command != "GC":
            return self._large_queue
        return self._queues.get(request.command, self._other_queue)

    def _queue_error(self, respond_and_close: Work, close: Work) -> None:
        try:
            self._other_queue.submit(respond_and_close)
        except TryAgainError as error:
            self._context.make_log().error(f"connection closed without a response: {error.message}")
            close()

    def _guard(self, serve: Callable[..., None], *arguments: Any) -> None:
        """Serves one call; a bug is logged, since the thread serves other calls."""
        try:
            serve(*arguments)
        except Exception:  # noqa: BLE001 - see above
            self._context.make_log().error(f"call failed by an unexpected exception: {traceback.format_exc()}")

    def _call(self, connection: ShimConnection, request: ShimRequest) -> ReceivedCall:
        measured = self._context.metrics.queued(request.command)
        return ReceivedCall(connection, request, self._interruption(connection, request), measured)

    def _interruption(self, connection: ShimConnection, request: ShimRequest) -> Interruption:
        """Returns the cancellation of an ADD, a STATUS or a CHECK; a DEL cancels the ADDs of its attachment."""
        match request.command:
            case "ADD" | "STATUS":
                return self.cancellable.add(request.attachment, connection)
            case "CHECK":
                return Cancellation(connection)
            case "DEL":
                self.cancellable.cancel(request.attachment)
        return NEVER

    def _end(self, call: ReceivedCall) -> None:
        """Frees what the call holds; last the connection: a shim that sees it closed finds the call in the metrics."""
        try:
            if isinstance(call.interruption, Cancellation):
                self.cancellable.end(call.interruption)
            self._context.metrics.ended(call.measured)
        finally:
            call.connection.close()

    def _serve(self, call: ReceivedCall) -> None:
        try:
            call.measured.begin()
            self._run_unless_cancelled(call)
        finally:
            self._end(call)

    def _run_unless_cancelled(self, call: ReceivedCall) -> None:
        try:
            _ensure_not_cancelled(call)
        except TryAgainError as error:
            self._end_cancelled(call, error)
        else:
            self._respond(call, self._run_call(call))

    def _end_cancelled(self, call: ReceivedCall, error: TryAgainError) -> None:
        container, ifname = call.request.attachment
        log = self._context.make_log().bind(container=container, ifname=ifname)
        if call.connection.has_hung_up:
            log.info("ADD dropped before it began: the runtime closed the connection")
            self._context.metrics.dropped()
        else:
            log.error(f"ADD failed before it began: {error.message}")
            self._respond(call, error_output(error))

    def _run_call(self, call: ReceivedCall) -> CommandOutput:
        context = CallContext(self._context, call.connection, call.request, call.measured, call.interruption)
        environment = {**call.request.environment, **self._environment}
        return respond(environment, lambda: call.request.input, context)

    def _respond(self, call: ReceivedCall, output: CommandOutput) -> None:
        if output.status:
            self._context.metrics.failed(call.request.command, output.code)
        if not call.connection.has_responded:
            call.connection.respond(output.status, output.encoded)
        if call.request.command == "ADD":
            self._context.recent_adds.note(call.request, call.measured, output)

    def _refuse(self, call: ReceivedCall, error: TryAgainError) -> None:
        try:
            self._context.make_log().error(error.message)
            self._respond(call, error_output(error))
        finally:
            self._end(call)

    def _reject(self, connection: ShimConnection, error: PluginError) -> None:
        with contextlib.closing(connection):
            self._context.make_log().error(error.message)
            self._context.metrics.failed("", error.code)
            connection.reject(error_output(error).encoded)


def _ensure_not_cancelled(call: ReceivedCall) -> None:
    """Raises `TryAgainError` if an ADD was cancelled while it was queued. CHECK looks for itself."""
    if call.request.command == "ADD":
        call.interruption.check()
