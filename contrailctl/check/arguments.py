"""Arguments of `contrailctl check`."""

import argparse

from contrailctl.check.live.arguments import add_live, add_pod_programs
from contrailctl.kubeconfig import DEFAULT_NAMESPACE, add_kubeconfig, add_node_command


def add_check(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser) -> None:
    """Adds the command `check` and its operations."""
    check = commands.add_parser("check", help="find what keeps networks from working")
    operations = check.add_subparsers(dest="operation", required=True, metavar="OPERATION")
    _add_connectivity(operations, common)
    _add_node(operations, common)
    add_pod_programs(operations, common)


def _add_connectivity(
    operations: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    connectivity = operations.add_parser(
        "connectivity",
        help="check the networks of the cluster: the objects of the store, and the kernel of each node",
        description="Compares the virtual machines in the store with the slices that other nodes read, and runs "
        "`check node` on each node. Changes nothing, but for the temporary pods of --live. Exit status: 0 nothing "
        "found, 1 something found, 2 not checked.",
        parents=[common],
    )
    add_kubeconfig(connectivity)
    connectivity.add_argument("--node", dest="nodes", metavar="NAME", action="append", help="only these nodes")
    where = connectivity.add_mutually_exclusive_group()
    add_node_command(where)
    where.add_argument("--store-only", action="store_true", help="do not check the kernels of nodes")
    connectivity.add_argument(
        "-n", "--namespace", default=DEFAULT_NAMESPACE, help=f"of contrail-node pods; default: {DEFAULT_NAMESPACE}"
    )
    _add_probes(connectivity)
    add_live(connectivity)


def _add_node(
    operations: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    node = operations.add_parser(
        "node",
        help="check the kernel of this node, as root",
        description="Compares the kernel of this node with its desired state, and probes the way to other nodes. "
        "Changes nothing. Exit status: 0 nothing found, 1 something found, 2 not checked.",
        parents=[common],
    )
    node.add_argument("--config", metavar="FILE", help="that of contrail-cnid; default: the node's settings file")
    node.add_argument("--node-name", metavar="NAME", help="name in the output; default: the host name")
    _add_probes(node)


def _add_probes(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--no-probes",
        dest="probes",
        action="store_false",
        help="send no echo requests to other nodes, such as where ICMP is filtered",
    )
