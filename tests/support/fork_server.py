"""Fork server that runs calls of the plugin in forks with the plugin loaded: 5 ms instead of 50 ms for a new process.

It is a separate single-threaded program, as forking is only safe with one thread. Each connection is one call: it
receives the descriptors of standard input, output and error, and returns the exit status. A call can kill itself after
its n-th step: a change of the file system, a request to the kernel, a request to the agent or its response.

A node daemon is started in the same way. Its steps are counted from its first call on, and it writes a line to standard
output for each completed call.
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

import cni_contrail.agent.http
import cni_contrail.commands.add
import cni_contrail.commands.check
import cni_contrail.commands.delete
import cni_contrail.commands.garbage_collect
import cni_contrail.commands.status
import cni_contrail.commands.unrecorded
import cni_contrail.commands.vrouter_agent
import cni_contrail.daemon.cli
from cni_contrail.daemon.connection_handler import ConnectionHandler, ReceivedCall
from cni_contrail.link import netns as plugin_netns
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.plugin import main

NUMBER = "CNI_NUMBER"
"""Environment variable that identifies a call to a daemon."""

_MAX_REQUEST = 65536


class StartRequest(NamedTuple):
    """A call: its environment, the path of the network namespace, and the step at which it kills itself (0: none).

    With `daemon`, it starts the daemon with these arguments instead.
    """

    environment: dict[str, str]
    netns: str
    kill_at: int
    daemon: list[str] | None = None


def serve(listener: socket.socket) -> None:
    """Serves until standard input ends, which means that the parent has ended."""
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
    request, streams, _, _ = socket.recv_fds(connection, _MAX_REQUEST, 3)
    pid = os.fork()  # noqa: TID251 - this process has one thread
    if pid == 0:
        _run(StartRequest(**json.loads(request)), streams)
    for stream in streams:
        os.close(stream)
    return pid


def _run(request: StartRequest, streams: list[int]) -> None:
    for standard, stream in enumerate(streams):
        os.dup2(stream, standard)
    os.environ.clear()
    os.environ.update(request.environment)
    plugin_netns.InNetns(os.open(request.netns, os.O_RDONLY)).__enter__()
    if request.daemon is not None:
        _die_in_first_call(request.kill_at)
        _report_completed_calls()
        os._exit(cni_contrail.daemon.cli.main(request.daemon))
    _die_at(request.kill_at)
    gc.disable()
    os._exit(main())


def _answer(pid: int, connection: socket.socket) -> None:
    _, status = os.waitpid(pid, 0)
    with connection, contextlib.suppress(BrokenPipeError):  # the client has gone
        connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _die_in_first_call(number: int) -> None:
    run_call = ConnectionHandler._run_call

    def first(*arguments: Any) -> Any:
        ConnectionHandler._run_call = run_call  # type: ignore[method-assign]  # patched on purpose
        _die_at(number)
        return run_call(*arguments)

    if number:
        ConnectionHandler._run_call = first  # type: ignore[method-assign, assignment]  # patched on purpose


def _report_completed_calls() -> None:
    """Writes a call's number to standard output when it is complete, including the work after its response."""
    serve = ConnectionHandler._serve

    def reported(handler: ConnectionHandler, call: ReceivedCall) -> None:
        serve(handler, call)
        os.write(1, f"{call.request.environment.get(NUMBER)}\n".encode())

    ConnectionHandler._serve = reported  # type: ignore[method-assign, assignment]  # patched on purpose


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
        for name in ("link", "mkdir", "rename", "rmdir", "unlink", "pwrite"):
            setattr(os, name, step(getattr(os, name)))
        os.open = step(os.open, lambda _, flags, *__: flags & os.O_CREAT)
        fcntl.flock = step(fcntl.flock)
        RouteSocket._send = step(RouteSocket._send)  # type: ignore[method-assign]  # patched on purpose
        socket.socket.sendall = step(socket.socket.sendall)  # type: ignore[method-assign]  # patched on purpose
        cni_contrail.agent.http._read_response = step(cni_contrail.agent.http._read_response)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
