"""Handler of one shim connection, from its first byte to its last."""

from __future__ import annotations

import contextlib
import os
import socket

from cni_contrail.daemon.cancellation import Cancellation, RunningAdds
from cni_contrail.daemon.errors import NoRequestError, ProtocolError
from cni_contrail.daemon.execution_context import CallContext, DaemonContext
from cni_contrail.daemon.metrics import MeasuredCall
from cni_contrail.daemon.protocol import ShimConnection, ShimRequest
from cni_contrail.deadline import NEVER, Interruption
from cni_contrail.errors import Code, PluginError
from cni_contrail.node_file import NODE_FILE_VARIABLE
from cni_contrail.plugin import CommandOutput, error_output, respond

_MAX_ADDS = 512
_ROOT = 0


class ConnectionHandler:
    """Serves connections, each in the calling thread."""

    def __init__(self, context: DaemonContext) -> None:
        self.adds = RunningAdds(_MAX_ADDS)
        self._context = context
        # The shim sends CNI_ variables only: which node-wide file is read is up to the daemon's own environment.
        self._environment = {key: value for key, value in os.environ.items() if key == NODE_FILE_VARIABLE}

    def serve(self, accepted: socket.socket) -> None:
        """Serves one connection and closes it."""
        with contextlib.closing(ShimConnection(accepted)) as connection:
            try:
                self._reject_non_root(connection)
                request = connection.receive()
            except NoRequestError:
                return
            except ProtocolError as error:
                self._context.make_log().error(str(error))
            except PluginError as error:
                self._context.make_log().error(error.message)
                self._context.metrics.failed("", error.code)
                connection.reject(error_output(error).encoded)
            else:
                self._serve_request(connection, request)

    def _reject_non_root(self, connection: ShimConnection) -> None:
        if connection.peer_user != _ROOT:
            raise PluginError(Code.DAEMON_PROTOCOL, f"permission denied: user {connection.peer_user} is not root")

    def _serve_request(self, connection: ShimConnection, request: ShimRequest) -> None:
        connection.acknowledge()
        command = request.environment.get("CNI_COMMAND", "")
        with self._context.metrics.call(command) as measured:
            output = self._run_call(connection, request, measured)
        if output.status:
            self._context.metrics.failed(command, output.code)
        if not connection.has_responded:
            connection.respond(output.status, output.encoded)

    def _run_call(self, connection: ShimConnection, request: ShimRequest, measured: MeasuredCall) -> CommandOutput:
        try:
            with self._interruption(connection, request) as interruption:
                context = CallContext(self._context, connection, request, measured, interruption)
                environment = {**request.environment, **self._environment}
                return respond(environment, lambda: request.input, context)
        except PluginError as error:
            self._context.make_log().error(error.message)
            return error_output(error)

    def _interruption(
        self, connection: ShimConnection, request: ShimRequest
    ) -> contextlib.AbstractContextManager[Interruption]:
        """Returns the cancellation of an ADD or a CHECK; a DEL cancels the ADDs of its attachment."""
        environment = request.environment
        attachment = (environment.get("CNI_CONTAINERID", ""), environment.get("CNI_IFNAME", ""))
        if environment.get("CNI_COMMAND") == "ADD":
            return self.adds.track(attachment, connection)
        if environment.get("CNI_COMMAND") == "DEL":
            self.adds.cancel(attachment)
        if environment.get("CNI_COMMAND") == "CHECK":
            return contextlib.closing(Cancellation(connection))
        return contextlib.nullcontext(NEVER)
