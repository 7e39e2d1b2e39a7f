"""The daemon from start to stop."""

from __future__ import annotations

import contextlib
import gc
import math
import os
import signal

from cni_contrail.commands import add, check, delete, garbage_collect, unrecorded, vrouter_agent  # noqa: F401 - the first call needs them too
from cni_contrail.commands.node import Node
from cni_contrail.commands.status import ensure_ready
from cni_contrail.daemon.configuration import DaemonConfiguration, ensure_supported
from cni_contrail.daemon.connection_handler import ConnectionHandler
from cni_contrail.daemon.execution_context import DaemonContext
from cni_contrail.daemon.listener import bound_socket
from cni_contrail.daemon.maintenance import Maintenance
from cni_contrail.daemon.status_server import status_server
from cni_contrail.daemon.workers import Workers
from cni_contrail.errors import PluginError
from cni_contrail.node_file import NODE_FILE, NODE_FILE_VARIABLE
from cni_contrail.settings import node_settings
from contrail_service.file_limit import raise_file_limit

_MOST_REQUESTS = 640
_DRAINING = 4.0  # seconds for what is under way when the daemon is told to stop
_STOP = (signal.SIGTERM, signal.SIGINT)


class Daemon:
    """One daemon with its parts."""

    def __init__(self, configuration: DaemonConfiguration, *, json_lines: bool) -> None:
        self._configuration = configuration
        self._context = DaemonContext(configuration, json_lines=json_lines)
        self._requests = ConnectionHandler(self._context)
        self._upkeep = Maintenance(self._node, self._context.make_log(), freed=self._context.metrics.freed)
        self._context.metrics.watch_pending(self._count_pending)

    def run(self) -> None:
        """Serves until SIGTERM or SIGINT; raises `SocketError`.

        For the node-wide file raises `PluginError`, or `ConfigurationError` for what it sets and is not served yet.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOP)  # threads inherit that, and none is interrupted
        raise_file_limit()  # a call opens half a dozen
        node = self._node()
        ensure_supported(node.settings, os.environ.get(NODE_FILE_VARIABLE) or NODE_FILE)  # its own were looked at
        log = node.log
        with contextlib.ExitStack() as running:
            listener = running.enter_context(bound_socket(self._configuration.socket))
            if self._configuration.metrics_listen:
                registry = self._context.metrics.registry
                running.enter_context(status_server(self._configuration.metrics_listen, self._unreadiness, registry))
            workers = Workers(listener, self._requests.serve, most=_MOST_REQUESTS)
            gc.freeze()
            self._upkeep.start()
            workers.start()
            log.info(f"contrail-cnid serves at {self._configuration.socket}")
            signal.sigwait(_STOP)
            self._requests.adds.close("the node daemon is stopping")
            if not workers.stop(_DRAINING):
                log.warning("calls are cut off that did not end in time")
            self._upkeep.stop(_DRAINING / 8)
        log.info("contrail-cnid has stopped")

    def _node(self) -> Node:
        settings = node_settings(os.environ, self._context.node_settings)
        log = self._context.make_log(settings.log_file, settings.log_level)
        return Node(settings, log, self._context)

    def _count_pending(self) -> float:
        try:
            return self._node().pending.count()
        except PluginError:  # `/readyz` says it
            return math.nan

    def _unreadiness(self) -> str:
        try:
            ensure_ready(self._node())
        except PluginError as error:
            return error.message
        return ""
