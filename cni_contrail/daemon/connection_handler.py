"""One connection from its first byte to its last."""

from __future__ import annotations

import contextlib
import os
import socket

from cni_contrail.daemon.cancellation import RunningAdds
from cni_contrail.daemon.errors import NoRequestError, ProtocolError
from cni_contrail.daemon.execution_context import CallContext, DaemonContext
from cni_contrail.daemon.metrics import MeasuredCall
from cni_contrail.daemon.protocol import ShimConnection, ShimRequest
from cni_contrail.deadline import NEVER, Interruption
from cni_contrail.errors import Code, PluginError
from cni_contrail.node_file import NODE_FILE_VARIABLE
from cni_contrail.plugin import CommandOutput, error_output, respond

_MOST_ADDS = 512
_ROOT = 0


class ConnectionHandler:
    """Serves connections, each in a thread that the caller gives."""

    def __init__(self, context: DaemonContext) -> None:
        self.adds = RunningAdds(_MOST_ADDS)
        self._context = context
        self._environment = {key: value for key, value in os.environ.items() if key == NODE_FILE_VARIABLE}

    def serve(self, accepted: socket.socket) -> None:
        """Serves one, and closes it."""
        with contextlib.closing(ShimConnection(accepted)) as connection:
            try:
                self._refuse_others(connection)
                received = connection.receive()
            except NoRequestError:
                return
            except ProtocolError as error:
                self._context.make_log().error(str(error))
            except PluginError as error:
                self._context.make_log().error(error.message)
                self._context.metrics.failed("", error.code)
                connection.refuse(error_output(error).printed)
            else:
                self._answer(connection, received)

    def _refuse_others(self, connection: ShimConnection) -> None:
        if connection.peer != _ROOT:
            raise PluginError(Code.DAEMON_PROTOCOL, f"the daemon serves root alone, not user {connection.peer}")

    def _answer(self, connection: ShimConnection, received: ShimRequest) -> None:
        connection.acknowledge()
        command = received.environment.get("CNI_COMMAND", "")
        with self._context.metrics.call(command) as measured:
            answer = self._carry_out(connection, received, measured)
        if answer.status:
            self._context.metrics.failed(command, answer.code)
        if not connection.is_answered:
            connection.answer(answer.status, answer.printed)

    def _carry_out(self, connection: ShimConnection, received: ShimRequest, measured: MeasuredCall) -> CommandOutput:
        try:
            with self._interruption(connection, received) as interruption:
                context = CallContext(self._context, connection, received, measured, interruption)
                environment = {**received.environment, **self._environment}
                return respond(environment, lambda: received.input, context)
        except PluginError as error:
            self._context.make_log().error(error.message)
            return error_output(error)

    def _interruption(
        self, connection: ShimConnection, received: ShimRequest
    ) -> contextlib.AbstractContextManager[Interruption]:
        """That of an ADD; a DEL is one to the ADDs of its attachment."""
        environment = received.environment
        attachment = (environment.get("CNI_CONTAINERID", ""), environment.get("CNI_IFNAME", ""))
        if environment.get("CNI_COMMAND") == "ADD":
            return self.adds.begun(attachment, connection)
        if environment.get("CNI_COMMAND") == "DEL":
            self.adds.cancel(attachment)
        return contextlib.nullcontext(NEVER)
