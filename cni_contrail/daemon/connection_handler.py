"""One connection from its first byte to its last."""

from __future__ import annotations

import contextlib
import os
import socket

from cni_contrail.daemon.cancellation import RunningAdds
from cni_contrail.daemon.errors import NoRequestError, ProtocolError
from cni_contrail.daemon.execution_context import CallContext, DaemonContext
from cni_contrail.daemon.metrics import MeasuredCall
from cni_contrail.daemon.protocol import Conversation, Received
from cni_contrail.deadline import NEVER, Interruption
from cni_contrail.errors import Code, PluginError
from cni_contrail.node_file import NODE_FILE_VARIABLE
from cni_contrail.plugin import CommandOutput, failure, respond

_MOST_ADDS = 512
_ROOT = 0


class ConnectionHandler:
    """Serves connections, each in a thread that the caller gives."""

    def __init__(self, surroundings: DaemonContext) -> None:
        self.adds = RunningAdds(_MOST_ADDS)
        self._surroundings = surroundings
        self._environment = {key: value for key, value in os.environ.items() if key == NODE_FILE_VARIABLE}

    def serve(self, connection: socket.socket) -> None:
        """Serves one, and closes it."""
        with contextlib.closing(Conversation(connection)) as conversation:
            try:
                self._refuse_others(conversation)
                received = conversation.receive()
            except NoRequestError:
                return
            except ProtocolError as error:
                self._surroundings.journal().error(str(error))
            except PluginError as error:
                self._surroundings.journal().error(error.message)
                self._surroundings.metrics.failed("", error.code)
                conversation.refuse(failure(error).printed)
            else:
                self._answer(conversation, received)

    def _refuse_others(self, conversation: Conversation) -> None:
        if conversation.peer != _ROOT:
            raise PluginError(Code.DAEMON_PROTOCOL, f"the daemon serves root alone, not user {conversation.peer}")

    def _answer(self, conversation: Conversation, received: Received) -> None:
        conversation.acknowledge()
        command = received.environment.get("CNI_COMMAND", "")
        with self._surroundings.metrics.call(command) as measured:
            answer = self._carry_out(conversation, received, measured)
        if answer.status:
            self._surroundings.metrics.failed(command, answer.code)
        if not conversation.is_answered:
            conversation.answer(answer.status, answer.printed)

    def _carry_out(self, conversation: Conversation, received: Received, measured: MeasuredCall) -> CommandOutput:
        try:
            with self._interruption(conversation, received) as interruption:
                surroundings = CallContext(self._surroundings, conversation, received, measured, interruption)
                environment = {**received.environment, **self._environment}
                return respond(environment, lambda: received.input, surroundings)
        except PluginError as error:
            self._surroundings.journal().error(error.message)
            return failure(error)

    def _interruption(
        self, conversation: Conversation, received: Received
    ) -> contextlib.AbstractContextManager[Interruption]:
        """That of an ADD; a DEL is one to the ADDs of its attachment."""
        environment = received.environment
        attachment = (environment.get("CNI_CONTAINERID", ""), environment.get("CNI_IFNAME", ""))
        if environment.get("CNI_COMMAND") == "ADD":
            return self.adds.begun(attachment, conversation)
        if environment.get("CNI_COMMAND") == "DEL":
            self.adds.cancel(attachment)
        return contextlib.nullcontext(NEVER)
