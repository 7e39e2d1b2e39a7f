"""Plugin entry: reads environment and standard input, runs one command, writes one JSON document or nothing.

Standard output is all that the runtime receives, so nothing else is ever written there. An unexpected exception is
reported as error 999, with the traceback in the log.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from cni_contrail.commands.node import NodeServices
from cni_contrail.commands.request import Request
from cni_contrail.errors import Code, PluginError
from cni_contrail.execution_context import ExecutionContext
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.log import Log
from cni_contrail.pod import PodIdentity, pod_of
from cni_contrail.protocol.environment import Call, read_call, reject_malformed_args
from cni_contrail.protocol.netconf import LARGEST_CONFIG, NetworkConfig, read_config
from cni_contrail.protocol.results import error_document
from cni_contrail.protocol.versions import CURRENT, SUPPORTED, check_version, version_document
from cni_contrail.quoting import cut
from cni_contrail.settings import load_settings, load_settings_for_removal

_ABOUT = (
    "contrail-k8s-cni attaches Kubernetes pods to Contrail virtual networks\n"
    f"CNI protocol versions supported: {', '.join(SUPPORTED)}\n"
)
_STANDARD_INPUT, _STANDARD_OUTPUT, _STANDARD_ERROR = 0, 1, 2
_READ_SIZE = 64 * 1024  # bytes; most configurations have less than 1 KiB
_COMMANDS = ("ADD", "CHECK", "DEL", "GC", "STATUS")


class CommandOutput(NamedTuple):
    """Exit status, text for standard output, and the code of an error."""

    status: int
    output: str
    code: int = 0

    @property
    def encoded(self) -> bytes:
        """The output as bytes, with a line feed."""
        return f"{self.output.rstrip()}\n".encode() if self.output else b""


def main() -> int:
    """Serves one call and returns the exit status."""
    _occupy_closed_descriptors()
    if not os.environ.get("CNI_COMMAND"):
        _write(_STANDARD_ERROR, _ABOUT.encode())
        return 0
    output = respond(os.environ, _read_standard_input)
    try:
        _write(_STANDARD_OUTPUT, output.encoded)
    except OSError as error:
        Log().error(f"standard output: cannot be written: {error.strerror}")
        return 1
    return output.status


def respond(
    environment: Mapping[str, str], read_input: Callable[[], bytes], context: ExecutionContext | None = None
) -> CommandOutput:
    """Serves one call; `read_input` returns the network configuration and is called only if the command has one."""
    context = context or ExecutionContext()
    log = context.make_log()
    version = CURRENT
    try:
        call = read_call(environment)
        if call.command == "VERSION":
            return CommandOutput(0, version_document())
        log = log.bind(container=call.container_id, ifname=call.ifname)
        config = read_config(read_input())
        # An error is reported in the version of the configuration, if that is supported.
        if config.version in SUPPORTED:
            version = config.version
        _check_command(call.command, config.version)
        request = _read_request(call, config, environment, context, log)
        log = request.node.log
        return CommandOutput(0, _run_command(request))
    except PluginError as error:
        log.error(f"{cut(environment.get('CNI_COMMAND', ''))} failed with code {error.code}: {error}")
        return error_output(error, version)
    except Exception as error:  # noqa: BLE001 - the runtime gets a result even after a bug
        from traceback import format_exc

        log.error(f"{cut(environment.get('CNI_COMMAND', ''))} failed by an unexpected exception: {format_exc()}")
        return error_output(PluginError(Code.INTERNAL, f"{type(error).__name__}: {error}"), version)


def error_output(error: PluginError, version: str = CURRENT) -> CommandOutput:
    """Returns the output of a failed call."""
    return CommandOutput(1, error_document(error, version), error.code)


def _check_command(command: str, version: str) -> None:
    if command not in _COMMANDS:
        raise PluginError(Code.INVALID_ENVIRONMENT, f"unknown CNI_COMMAND: {cut(command)}")
    check_version(command, version)


def _read_request(
    call: Call, config: NetworkConfig, environment: Mapping[str, str], context: ExecutionContext, log: Log
) -> Request:
    overrides = context.node_settings
    if call.command == "DEL":  # DEL after a rejected ADD must succeed: its errors are ignored here
        settings = load_settings_for_removal(config, environment, overrides, log)
        pod = _pod_if_any(call)
    else:
        settings = load_settings(config, environment, overrides)
        reject_malformed_args(call)
        pod = pod_of(call)
    log = context.make_log(settings.log_file, settings.log_level)
    log = log.bind(container=call.container_id, ifname=call.ifname, pod=str(pod) if pod.name else "")
    return Request(call, config, pod, NodeServices(settings, log, context))


def _pod_if_any(call: Call) -> PodIdentity:
    try:
        return pod_of(call)
    except PluginError:
        return pod_of(call._replace(args={}))


def _run_command(request: Request) -> str:
    """Imports the modules of one command only: in the entry point, every import adds to the duration of the call."""
    match request.call.command:
        case "ADD":
            from cni_contrail.commands.add import add

            return add(request)
        case "DEL":
            from cni_contrail.commands.delete import delete

            delete(request)
        case "CHECK":
            from cni_contrail.commands.check import check

            check(request)
        case "STATUS":
            from cni_contrail.commands.status import status

            status(request.config, request.node)
        case "GC":
            from cni_contrail.commands.garbage_collect import collect

            collect(request.config, request.node)
    return ""


def _occupy_closed_descriptors() -> None:
    """Opens standard streams that the runtime closed: otherwise the next file or socket would become one of them."""
    for descriptor in (_STANDARD_INPUT, _STANDARD_OUTPUT, _STANDARD_ERROR):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_WRONLY)  # not readable either, like a closed one


def _read_standard_input() -> bytes:
    data = b""
    try:
        # Reads past the limit once, to detect longer input without reading all of it.
        while len(data) <= LARGEST_CONFIG and (more := os.read(_STANDARD_INPUT, _READ_SIZE)):
            data += more
    except OSError as error:
        raise PluginError(Code.IO_FAILURE, f"error reading from stdin: {error.strerror}") from error
    if len(data) > LARGEST_CONFIG:
        raise PluginError(Code.DECODING_FAILURE, f"network configuration is longer than {LARGEST_CONFIG} bytes")
    return data


def _write(descriptor: int, text: bytes) -> None:
    if text:
        with open(descriptor, "wb", closefd=False, buffering=0) as stream:
            stream.write(text)
