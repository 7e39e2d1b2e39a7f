"""Entry point of the operators' command line: `contrailctl get|describe|status|check|cni|datapath`.

Exit status: 0 success, 1 failure or not found, 2 usage error, 130 interrupted. An error is one line on stderr. A check
that could not be made ends with 2, since 1 says that it found something.
"""

import argparse
import importlib.metadata
import os
import sys

from cni_contrail.runtime.errors import AttachmentError, CniRuntimeError
from cni_contrail.runtime.interrupts import sigterm_interrupts
from contrailctl import cni, get
from contrailctl.agent import AgentApi
from contrailctl.arguments import DEFAULT_AGENT, DEFAULT_MANAGER, DEFAULT_TIMEOUT, parse_arguments
from contrailctl.describe import describe_pod
from contrailctl.endpoint import Endpoint
from contrailctl.errors import ContrailctlError, UsageError
from contrailctl.manager import ManagerApi
from contrailctl.output import Output, render
from contrailctl.purge import purge_datapath
from contrailctl.status import status
from contrailctl.table import printable
from contrailctl.watch import watch

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

_LISTS = {"networks": get.get_networks, "pods": get.get_pods, "events": get.get_events}
_OPERATIONS = {
    "add": cni.cni_add,
    "check": cni.cni_check,
    "del": cni.cni_del,
    "list": cni.cni_list,
    "gc": cni.cni_gc,
    "status": cni.cni_status,
}


def main(argv: list[str] | None = None) -> int:
    """Runs one command and returns its exit status."""
    version = importlib.metadata.version("contrail-multinet")
    arguments = parse_arguments(sys.argv[1:] if argv is None else argv, version=version)
    try:
        with sigterm_interrupts():
            if arguments.watch:
                return _watch(arguments)
            output = _run(arguments, version)
    # AttachmentError: --container-id, --ifname or --args is invalid.
    except (UsageError, AttachmentError) as error:
        return _fail(error, EXIT_USAGE)
    except (ContrailctlError, CniRuntimeError) as error:
        return _fail(error, EXIT_USAGE if arguments.command == "check" else EXIT_FAILED)
    # SIGTERM raises it too, so that a running plugin is ended.
    except KeyboardInterrupt:
        return _fail("interrupted", EXIT_INTERRUPTED)
    _print(render(output, arguments.output))
    return output.status


def _run(arguments: argparse.Namespace, version: str) -> Output:
    if arguments.output_watch_events:
        raise UsageError("--output-watch-events: only with --watch")
    if arguments.command == "cni":
        return _OPERATIONS[arguments.operation](arguments)
    if arguments.command == "datapath":
        return purge_datapath(arguments)
    if arguments.command == "check":
        return _check(arguments)
    if arguments.command == "status":
        return status(_manager_endpoint(arguments), _agent_endpoint(arguments), own_version=version)
    if arguments.command == "describe":
        return describe_pod(_source(arguments), arguments)
    if arguments.kind == "interfaces":
        return get.get_interfaces(_source(arguments), arguments)
    if arguments.kind == "ports":
        return get.get_ports(_agent(arguments), arguments)
    if arguments.kind == "datapath":
        return get.get_datapath(_agent(arguments))
    return _LISTS[arguments.kind](ManagerApi(_manager_endpoint(arguments)), arguments)


def _watch(arguments: argparse.Namespace) -> int:
    """Watches until it is interrupted, which is its normal end, or until nobody reads the output."""
    try:
        watch(_manager_endpoint(arguments), arguments)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _discard_output()
    return 0


def _check(arguments: argparse.Namespace) -> Output:
    # Imported here: the Kubernetes client takes longer than everything else, and no other command needs it.
    if arguments.operation == "node":
        from contrailctl.check.node import check_node

        return check_node(arguments)
    if arguments.operation == "respond":
        from contrailctl.check.live.responder import respond

        return respond(arguments)
    if arguments.operation == "probe":
        from contrailctl.check.live.prober import probe

        return probe(arguments)
    from contrailctl.check.connectivity import check_connectivity

    return check_connectivity(arguments)


def _source(arguments: argparse.Namespace) -> ManagerApi | AgentApi:
    """Returns the agent's API if only an agent is configured, else the manager's."""
    if arguments.agent and not arguments.manager:
        return _agent(arguments)
    return ManagerApi(_manager_endpoint(arguments))


def _agent(arguments: argparse.Namespace) -> AgentApi:
    return AgentApi(_agent_endpoint(arguments), cluster=arguments.cluster_name)


def _manager_endpoint(arguments: argparse.Namespace) -> Endpoint:
    return _endpoint(arguments.manager or os.environ.get("CONTRAIL_MANAGER") or DEFAULT_MANAGER, arguments)


def _agent_endpoint(arguments: argparse.Namespace) -> Endpoint:
    return _endpoint(arguments.agent or os.environ.get("CONTRAIL_AGENT") or DEFAULT_AGENT, arguments)


def _endpoint(url: str, arguments: argparse.Namespace) -> Endpoint:
    return Endpoint(url.rstrip("/"), arguments.timeout or DEFAULT_TIMEOUT)


def _print(text: str) -> None:
    """Prints a non-empty text; a reader that closes the pipe early (`| head`) is not a failure."""
    try:
        if text:
            print(text, flush=True)
    except BrokenPipeError:
        _discard_output()


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise the interpreter's final flush fails


def _fail(error: Exception | str, exit_status: int) -> int:
    print(f"contrailctl: {printable(' '.join(str(error).split()))}", file=sys.stderr)
    return exit_status
