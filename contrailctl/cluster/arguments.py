"""Arguments of the commands that read a whole cluster."""

import argparse

from contrailctl.adds import DEFAULT_DAEMON
from contrailctl.kubeconfig import DEFAULT_NAMESPACE, add_kubeconfig, add_node_command

DEFAULT_MAX_NODES = 10


def add_status(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    """Adds the command `status`."""
    status = commands.add_parser(
        "status",
        help="show the state of a cluster, or of one manager and one agent",
        description="Shows who leads, the agent, daemon and datapath of each node, pending pods, and what is wrong in "
        "the cluster that kubectl would use. With --manager or --agent, with their variables, or without a kubeconfig: "
        "readiness and object counts of these two processes. Exit status: 0 nothing is wrong, 1 something is, 2 not "
        "known.",
        parents=[common],
    )
    add_kubeconfig(status)
    _add_namespace(status)


def add_trace(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser) -> None:
    """Adds the command `trace`."""
    trace = commands.add_parser(
        "trace",
        help="show the start of a pod as a time line",
        description="Shows each step of a pod's start, from the objects of the cluster and the daemon of its node, and "
        "which took longest.",
        parents=[common],
    )
    trace.add_argument("pod", metavar="NAMESPACE/NAME")
    add_kubeconfig(trace)
    add_node_command(trace)
    _add_namespace(trace)


def add_sysdump(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    """Adds the command `sysdump`, and what it runs on nodes, which no help lists."""
    sysdump = commands.add_parser(
        "sysdump",
        help="collect everything that a bug report needs, without secrets",
        description="Writes status, objects, logs, and the state of nodes to an archive. Changes nothing there.",
        parents=[common],
    )
    sysdump.add_argument("--file", metavar="FILE", default="", help="default: contrail-sysdump-TIME.tar.gz")
    sysdump.add_argument("--node", dest="nodes", metavar="NAME", action="append", help="only these nodes")
    sysdump.add_argument(
        "--max-nodes",
        metavar="NUMBER",
        type=_number,
        default=DEFAULT_MAX_NODES,
        help=f"those with problems first; default: {DEFAULT_MAX_NODES}",
    )
    add_kubeconfig(sysdump)
    _add_namespace(sysdump)
    pages = commands.add_parser("node-pages", description="Prints what agent and daemon serve.", parents=[common])
    pages.add_argument("--daemon", metavar="URL", default=DEFAULT_DAEMON, help=f"default: {DEFAULT_DAEMON}")


def _number(text: str) -> int:
    if text.isascii() and text.isdigit():
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number")


def _add_namespace(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-n",
        "--namespace",
        default=DEFAULT_NAMESPACE,
        help=f"of managers, their lease, and contrail-node pods; default: {DEFAULT_NAMESPACE}",
    )
