"""Lifecycle of the daemon: start, serve until a signal, drain, stop."""

from __future__ import annotations

import contextlib
import gc
import importlib.metadata
import math
import os
import signal
from functools import partial

from cni_contrail.agent.client import agent_client
from cni_contrail.commands import add, check, delete, garbage_collect, networks, unrecorded, vrouter_agent  # noqa: F401 - loaded before the first call needs them
from cni_contrail.commands.node import NodeServices
from cni_contrail.commands.status import ensure_ready
from cni_contrail.daemon.acceptor import Acceptor
from cni_contrail.daemon.call_queue import without_slot
from cni_contrail.daemon.configuration import DaemonConfiguration
from cni_contrail.daemon.connection_handler import ConnectionHandler
from cni_contrail.daemon.connection_source import ConnectionSource
from cni_contrail.daemon.execution_context import DaemonContext
from cni_contrail.daemon.listener import bound_socket
from cni_contrail.daemon.maintenance import Maintenance
from cni_contrail.daemon.receiver import Receiver
from cni_contrail.daemon.reception import Reception
from cni_contrail.daemon.status_server import status_server
from cni_contrail.daemon.workers import Workers
from cni_contrail.datapath.kernel_support import missing_module
from cni_contrail.datapath.node_reconciler import NodeReconciler
from cni_contrail.deadline import Deadline
from cni_contrail.errors import PluginError
from cni_contrail.follower.follower import Follower
from cni_contrail.link.host_side import DIRECTORY
from cni_contrail.log import Log
from cni_contrail.settings import node_settings
from contrail_service.file_limit import raise_file_limit

_ACCEPTORS = 2  # few: each one that waits for the interpreter delays the others
_DRAIN_TIMEOUT = 4.0  # seconds for running calls to end after SIGTERM
_STOP = (signal.SIGTERM, signal.SIGINT)


class Daemon:
    """One daemon with its parts."""

    def __init__(self, configuration: DaemonConfiguration, *, json_lines: bool) -> None:
        self._configuration = configuration
        self._context = DaemonContext(configuration, json_lines=json_lines)
        self._workers = Workers()
        self._handler = ConnectionHandler(self._context, self._workers.run)
        self._maintenance = Maintenance(self._node, self._context.make_log(), freed=self._context.metrics.freed)
        self._context.metrics.watch_pending(self._count_pending)
        self._follower: Follower | None = None

    def run(self) -> None:
        """Serves until SIGTERM or SIGINT; raises `SocketError`, or `PluginError` for an invalid node-wide file."""
        # Threads inherit the mask, so no signal interrupts their system calls; only `sigwait` below receives it.
        signal.pthread_sigmask(signal.SIG_BLOCK, _STOP)
        raise_file_limit()  # a call opens half a dozen
        log = self._node().log
        with contextlib.ExitStack() as running:
            listener = running.enter_context(bound_socket(self._configuration.socket))
            if self._configuration.metrics_listen:
                registry, adds = self._context.metrics.registry, self._context.recent_adds
                running.enter_context(
                    status_server(self._configuration.metrics_listen, self._unreadiness, registry, adds, log)
                )
            source = ConnectionSource(listener, log)
            Deadline.around_long_waits = without_slot
            gc.freeze()  # modules live as long as the process: collections need not traverse them
            self._maintenance.start()
            self._follow_datapath(log)
            self._workers.start()
            # Logged before anybody can connect, so that it precedes the lines of calls.
            log.info(f"contrail-cnid is serving at {self._configuration.socket}")
            if self._context.held_namespaces is not None:
                log.info(_who_pins(self._node().settings.netns_dir))
            receiver = self._receive(source, log)
            signal.sigwait(_STOP)
            self._handler.cancellable.close("the node daemon is stopping")
            receiver.stop()
            if not self._workers.drain(_DRAIN_TIMEOUT):
                log.warning(f"drain timed out after {_DRAIN_TIMEOUT:g} s: calls that still run are cut off")
            self._maintenance.stop(_DRAIN_TIMEOUT / 8)
            if self._follower is not None:
                self._follower.stop(_DRAIN_TIMEOUT / 8)
        log.info("contrail-cnid has stopped")

    def _receive(self, source: ConnectionSource, log: Log) -> Receiver:
        """Starts the threads that receive; the receiver watches last, so it accepts only when no acceptor can."""
        handler = self._handler
        source.listen()
        here = Reception(log, receive=partial(handler.receive, run=self._workers.run_here), reject=handler.reject)
        for _ in range(_ACCEPTORS):
            Acceptor(source, log, here).start()
        receiver = Receiver(source, log, Reception(log, receive=handler.receive, reject=handler.reject))
        receiver.start()
        return receiver

    def _follow_datapath(self, log: Log) -> None:
        """Follows the desired state of the node's datapath, which only the Unix socket of our agent serves."""
        settings = self._node().settings
        if not settings.agent_socket:
            return
        reconciler = NodeReconciler(self._context.namespaces(settings.netns_dir), sysctl_dir=settings.sysctl_dir)
        rehearse = partial(missing_module, sysctl_dir=settings.sysctl_dir)
        self._follower = Follower(
            agent_client(settings).endpoint,
            reconciler,
            log,
            rehearse=rehearse,
            daemon_version=importlib.metadata.version("contrail-multinet"),
        )
        self._follower.start()

    def _node(self) -> NodeServices:
        settings = node_settings(os.environ, self._context.node_settings)
        self._context.maintained_state_dir = settings.state_dir
        log = self._context.make_log(settings.log_file, settings.log_level)
        return NodeServices(settings, log, self._context)

    def _count_pending(self) -> float:
        try:
            return self._node().pending.count()
        except PluginError:  # reported by `/readyz`
            return math.nan

    def _unreadiness(self) -> str:
        try:
            ensure_ready(self._node())
        except PluginError as error:
            return error.message
        return ""


def _who_pins(netns_dir: str) -> str:
    """Describes what happens to namespaces of networks where mounts of this process do not reach the host."""
    if netns_dir == DIRECTORY:
        return "mounts of this process do not reach the host: shims bind the namespaces of networks there"
    return f"networks may go with this process: its mounts do not reach the host, and netns-dir is not {DIRECTORY}"
