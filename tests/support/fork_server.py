"""Runs calls of the plugin in forks of this process, which has the plugin loaded: 5 ms where a start takes 50.

A program of its own, with one thread: only so is forking safe. Each call comes on a connection of its own, with the
descriptors of its standard input, output and error; its exit status is the answer. A call can be told to kill itself
after its n-th step: a change of the file system, a request to the kernel, a request to the agent or its answer.

A node daemon is started in the same way; its steps are counted from its first call on, and a line on its standard
output tells of each call that has ended.
"""

import contextlib
import fcntl
import gc
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pyroute2  # noqa: F401 - what CHECK takes longest for

import cni_contrail.agent.http
import cni_contrail.commands.add
import cni_contrail.commands.check
import cni_contrail.commands.delete
import cni_contrail.commands.garbage_collect
import cni_contrail.commands.status
import cni_contrail.commands.unrecorded
import cni_contrail.commands.vrouter_agent
import cni_contrail.daemon.cli
from cni_contrail.daemon.connection_handler import ConnectionHandler
from cni_contrail.daemon.protocol import ShimConnection, ShimRequest
from cni_contrail.link import netns as plugin_netns
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.plugin import main

NUMBER = "CNI_NUMBER"
"""The variable by which a call to a daemon is known."""

_LONGEST_REQUEST = 65536


class Order(NamedTuple):
    """A call: its whole environment, the network namespace (a path), and the step to be killed at, 0 for none.

    With `daemon` it is no call, but the daemon with these arguments.
    """

    environment: dict[str, str]
    netns: str
    kill_at: int
    daemon: list[str] | None = None


def serve(listener: socket.socket) -> None:
    """Serves until standard input ends: then whoever started this is gone."""
    running: dict[int, tuple[int, socket.socket]] = {}
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    poll.register(sys.stdin, select.POLLIN | select.POLLHUP)
    while True:
        for ready, _ in poll.poll():
            if ready == sys.stdin.fileno():
                return _kill(pid for pid, _ in running.values())
            if ready == listener.fileno():
                connection, _ = listener.accept()
                pid = _start(connection)
                descriptor = os.pidfd_open(pid)
                running[descriptor] = (pid, connection)
                poll.register(descriptor, select.POLLIN)
            else:
                poll.unregister(ready)
                _answer(*running.pop(ready))
                os.close(ready)


def _start(connection: socket.socket) -> int:
    request, streams, _, _ = socket.recv_fds(connection, _LONGEST_REQUEST, 3)
    pid = os.fork()  # noqa: TID251 - this process has one thread
    if pid == 0:
        _run(Order(**json.loads(request)), streams)
    for stream in streams:
        os.close(stream)
    return pid


def _run(order: Order, streams: list[int]) -> None:
    for standard, stream in enumerate(streams):
        os.dup2(stream, standard)
    os.environ.clear()
    os.environ.update(order.environment)
    plugin_netns.InNetns(os.open(order.netns, os.O_RDONLY)).__enter__()
    if order.daemon is not None:
        _die_in_first_call(order.kill_at)
        _tell_of_ends()
        os._exit(cni_contrail.daemon.cli.main(order.daemon))
    _die_at(order.kill_at)
    gc.disable()
    os._exit(main())


def _answer(pid: int, connection: socket.socket) -> None:
    _, status = os.waitpid(pid, 0)
    with connection, contextlib.suppress(BrokenPipeError):  # nobody waits for it any more
        connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _die_in_first_call(number: int) -> None:
    run_call = ConnectionHandler._run_call

    def first(*arguments: Any) -> Any:
        ConnectionHandler._run_call = run_call  # type: ignore[method-assign]  # the point of it
        _die_at(number)
        return run_call(*arguments)

    if number:
        ConnectionHandler._run_call = first  # type: ignore[method-assign, assignment]  # the point of it


def _tell_of_ends() -> None:
    """Writes a call's number to standard output when it is over, with all that comes behind its answer."""
    serve = ConnectionHandler._serve_request

    def reported(handler: ConnectionHandler, connection: ShimConnection, request: ShimRequest) -> None:
        serve(handler, connection, request)
        os.write(1, f"{request.environment.get(NUMBER)}\n".encode())

    ConnectionHandler._serve_request = reported  # type: ignore[method-assign, assignment]  # the point of it


def _die_at(number: int) -> None:
    steps = iter(range(number - 1, -1, -1))

    def step(function: Callable[..., Any], counts: Callable[..., object] = lambda *_: True) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            result = function(*arguments, **options)
            if counts(*arguments) and next(steps, None) == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return counted

    if number:
        for name in ("mkdir", "rename", "rmdir", "unlink", "pwrite"):
            setattr(os, name, step(getattr(os, name)))
        os.open = step(os.open, lambda _, flags, *__: flags & os.O_CREAT)
        fcntl.flock = step(fcntl.flock)
        RouteSocket._send = step(RouteSocket._send)  # type: ignore[method-assign]  # the point of it
        socket.socket.sendall = step(socket.socket.sendall)  # type: ignore[method-assign]  # the point of it
        cni_contrail.agent.http._read_response = step(cni_contrail.agent.http._read_response)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
