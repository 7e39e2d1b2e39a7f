"""Entry point of the operators' command line: `contrailctl get|describe|status|trace|sysdump|check|cni|datapath`.

Exit status: 0 success, 1 failure or not found, 2 usage error, 130 interrupted. An error is one line on stderr. A check
or a status that could not be made ends with 2, since 1 says that something is wrong.
"""

import argparse
import importlib.metadata
import os
import sys

from cni_contrail.runtime.errors import AttachmentError, CniRuntimeError
from cni_contrail.runtime.interrupts import sigterm_interrupts
from contrailctl import cni, get
from contrailctl.adds import get_adds
from contrailctl.agent import AgentApi
from contrailctl.arguments import DEFAULT_AGENT, DEFAULT_MANAGER, DEFAULT_TIMEOUT, parse_arguments
from contrailctl.colour import coloured, has_colours
from contrailctl.describe import describe_pod
from contrailctl.endpoint import Endpoint
from contrailctl.errors import ContrailctlError, UsageError
from contrailctl.kubeconfig import is_cluster_named
from contrailctl.manager import ManagerApi
from contrailctl.manager_token import manager_token
from contrailctl.output import Output, render
from contrailctl.purge import purge_datapath
from contrailctl.status import status
from contrailctl.sysdump.node_pages import node_pages
from contrailctl.table import printable
from contrailctl.waiting import shown_while
from contrailctl.watch import watch

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
KUBECTL_PLUGIN = "kubectl contrail"

_JUDGING = ("check", "status")
"""Commands whose exit status 1 says that something is wrong."""

_LISTS = {"networks": get.get_networks, "pods": get.get_pods, "events": get.get_events}
_OPERATIONS = {
    "add": cni.cni_add,
    "check": cni.cni_check,
    "del": cni.cni_del,
    "list": cni.cni_list,
    "gc": cni.cni_gc,
    "status": cni.cni_status,
}


def main(argv: list[str] | None = None, *, program: str = "contrailctl") -> int:
    """Runs one command and returns its exit status. `program` is how the user calls it."""
    arguments = parse_arguments(sys.argv[1:] if argv is None else argv, program=program, version=_version())
    arguments.program = program
    if arguments.command == "completion":
        return _print_shell_code(arguments)
    try:
        with sigterm_interrupts():
            if arguments.watch:
                return _watch(arguments)
            output = _run(arguments)
    # AttachmentError: --container-id, --ifname or --args is invalid.
    except (UsageError, AttachmentError) as error:
        return _fail(program, error, EXIT_USAGE)
    except (ContrailctlError, CniRuntimeError) as error:
        return _fail(program, error, EXIT_USAGE if arguments.command in _JUDGING else EXIT_FAILED)
    # SIGTERM raises it too, so that a running plugin is ended.
    except KeyboardInterrupt:
        return _fail(program, "interrupted", EXIT_INTERRUPTED)
    text = render(output, arguments.output)
    _print(coloured(text) if arguments.output == "table" and has_colours(sys.stdout, os.environ) else text)
    return output.status


def _print_shell_code(arguments: argparse.Namespace) -> int:
    from contrailctl.completion import shell_code  # takes a while, and no other command needs it

    _print(shell_code(arguments.shell))
    return 0


def _run(arguments: argparse.Namespace) -> Output:
    if arguments.output_watch_events:
        raise UsageError("--output-watch-events: only with --watch")
    return _COMMANDS[arguments.command](arguments)


def _version() -> str:
    return importlib.metadata.version("contrail-multinet")


def _cni(arguments: argparse.Namespace) -> Output:
    with shown_while(f"running {arguments.operation} of the plugins"):
        return _OPERATIONS[arguments.operation](arguments)


def _datapath(arguments: argparse.Namespace) -> Output:
    with shown_while("removing the datapath"):
        return purge_datapath(arguments)


def _get(arguments: argparse.Namespace) -> Output:
    with shown_while(f"reading {arguments.kind}"):
        return _list(arguments)


def _list(arguments: argparse.Namespace) -> Output:
    if arguments.kind == "adds":
        return get_adds(_endpoint(arguments.daemon, arguments), arguments)
    if arguments.kind == "interfaces":
        return get.get_interfaces(_source(arguments), arguments)
    if arguments.kind == "ports":
        return get.get_ports(_agent(arguments), arguments)
    if arguments.kind == "datapath":
        return get.get_datapath(_agent(arguments))
    return _LISTS[arguments.kind](ManagerApi(_manager_endpoint(arguments)), arguments)


def _describe(arguments: argparse.Namespace) -> Output:
    agent = _agent(arguments) if arguments.agent and arguments.manager else None
    with shown_while(f"reading pod {arguments.pod}"):
        return describe_pod(_source(arguments), arguments, agent=agent)


def _watch(arguments: argparse.Namespace) -> int:
    """Watches until it is interrupted, which is its normal end, or until nobody reads the output."""
    try:
        watch(_manager_endpoint(arguments), arguments)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _discard_output()
    return 0


def _status(arguments: argparse.Namespace) -> Output:
    """Shows the cluster if there is one, unless processes are named."""
    if (arguments.manager or arguments.agent) and (arguments.kubeconfig or arguments.context):
        raise UsageError("--manager and --agent name processes, --kubeconfig and --context a cluster: use one of them")
    manager, agent = _named_manager(arguments), _named_agent(arguments)
    is_of_cluster = arguments.kubeconfig or arguments.context or not (manager or agent)
    if arguments.program == KUBECTL_PLUGIN:
        is_of_cluster = not (arguments.manager or arguments.agent)
    elif not is_cluster_named(arguments, os.environ):
        is_of_cluster = False
    if is_of_cluster:
        from contrailctl.cluster.command import show_cluster_status

        return show_cluster_status(arguments)
    with shown_while("asking the processes"):
        return status(_manager_endpoint(arguments), _agent_endpoint(arguments), own_version=_version())


def _trace(arguments: argparse.Namespace) -> Output:
    from contrailctl.cluster.trace import trace_pod

    return trace_pod(arguments)


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
    endpoint = _endpoint(_named_manager(arguments) or DEFAULT_MANAGER, arguments)
    return endpoint._replace(token=manager_token())


def _agent_endpoint(arguments: argparse.Namespace) -> Endpoint:
    return _endpoint(_named_agent(arguments) or DEFAULT_AGENT, arguments)


def _named_manager(arguments: argparse.Namespace) -> str:
    return arguments.manager or os.environ.get("CONTRAIL_MANAGER", "")


def _named_agent(arguments: argparse.Namespace) -> str:
    return arguments.agent or os.environ.get("CONTRAIL_AGENT", "")


def _endpoint(url: str, arguments: argparse.Namespace) -> Endpoint:
    return Endpoint(url.rstrip("/"), arguments.timeout or DEFAULT_TIMEOUT)


def _sysdump(arguments: argparse.Namespace) -> Output:
    from contrailctl.sysdump.command import make_sysdump

    return make_sysdump(arguments)


def _node_pages(arguments: argparse.Namespace) -> Output:
    return node_pages(_agent_endpoint(arguments), _endpoint(arguments.daemon, arguments))


_COMMANDS = {
    "cni": _cni,
    "datapath": _datapath,
    "check": _check,
    "status": _status,
    "trace": _trace,
    "sysdump": _sysdump,
    "node-pages": _node_pages,
    "describe": _describe,
    "get": _get,
}


def _print(text: str) -> None:
    """Prints a non-empty text; a reader that closes the pipe early (`| head`) is not a failure."""
    try:
        if text:
            print(text, flush=True)
    except BrokenPipeError:
        _discard_output()


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise the interpreter's final flush fails


def _fail(program: str, error: Exception | str, exit_status: int) -> int:
    print(f"{program}: {printable(' '.join(str(error).split()))}", file=sys.stderr)
    return exit_status
