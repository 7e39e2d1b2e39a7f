"""Reception of one request: read without waiting, verified, acknowledged, and handed over."""

from __future__ import annotations

from collections.abc import Callable

from cni_contrail.daemon.errors import NoRequestError, ProtocolError
from cni_contrail.daemon.protocol import ShimRequest
from cni_contrail.daemon.shim_connection import ShimConnection
from cni_contrail.errors import Code, PluginError
from cni_contrail.log import Log

_ROOT = 0


class Reception:
    """Calls `receive` with each request, `reject` with those that are not read whole, both acknowledged."""

    def __init__(
        self,
        log: Log,
        *,
        receive: Callable[[ShimConnection, ShimRequest], None],
        reject: Callable[[ShimConnection, PluginError], None],
    ) -> None:
        self._log = log
        self._receive = receive
        self._reject = reject

    def begin(self, connection: ShimConnection) -> bool:
        """Reads what has arrived on a new connection; returns whether nothing more is to be read."""
        if connection.peer_user != _ROOT:
            message = f"permission denied: user {connection.peer_user} is not root"
            self._acknowledge_and_reject(connection, PluginError(Code.DAEMON_PROTOCOL, message))
            return True
        return self.read(connection)

    def read(self, connection: ShimConnection) -> bool:
        """Reads what has arrived since; returns whether nothing more is to be read."""
        try:
            request = connection.receive()
        except NoRequestError:
            connection.close()
        except ProtocolError as error:
            self._log.error(str(error))
            connection.close()
        except PluginError as error:
            self._acknowledge_and_reject(connection, error)
        else:
            if request is None:
                return False
            connection.acknowledge()
            self._receive(connection, request)
        return True

    def _acknowledge_and_reject(self, connection: ShimConnection, error: PluginError) -> None:
        connection.acknowledge()
        self._reject(connection, error)
