"""The cluster of a kubeconfig: the options that name it, and a client of its API server."""

import argparse
import contextlib
import os
import shlex
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from contrailctl.errors import ResponseError, UnreachableError, UsageError

if TYPE_CHECKING:
    from contrail_config.kube.client import KubeClient

DEFAULT_NAMESPACE = "contrail"

_REQUEST_TIMEOUT = 30.0
_VARIABLE = "KUBECONFIG"
_AT_HOME = "~/.kube/config"


def add_kubeconfig(command: argparse.ArgumentParser) -> None:
    """Adds the options that name a cluster."""
    command.add_argument("--kubeconfig", metavar="FILE", default="", help="default: as for kubectl")
    command.add_argument("--context", metavar="NAME", default="", help="context of the kubeconfig")


def add_node_command(command: "argparse._ActionsContainer") -> None:
    """Adds the option for nodes on which kubectl runs nothing: `node_command`, the words of a command, or None."""
    command.add_argument(
        "--node-command",
        type=command_words,
        metavar="COMMAND",
        help="runs contrailctl on the node {node}, such as 'ssh root@{node} contrailctl'; default: kubectl exec in its "
        "contrail-node pod",
    )


def command_words(text: str) -> list[str]:
    """Returns the words of an option that is a command line. Raises ArgumentTypeError."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from error
    if not words:
        raise argparse.ArgumentTypeError("must not be empty")
    return words


def is_cluster_named(arguments: argparse.Namespace, environment: Mapping[str, str]) -> bool:
    """Whether options, environment or the home directory name a cluster, as they do for kubectl."""
    named = arguments.kubeconfig or arguments.context or environment.get(_VARIABLE)
    return bool(named) or os.path.exists(os.path.expanduser(_AT_HOME))


def kubectl_options(arguments: argparse.Namespace) -> list[str]:
    """Returns the options with which kubectl uses the same cluster."""
    options = (("--kubeconfig", arguments.kubeconfig), ("--context", arguments.context))
    return [part for option in options if option[1] for part in option]


@contextlib.asynccontextmanager
async def connected(arguments: argparse.Namespace) -> AsyncIterator["KubeClient"]:
    """Yields a client of the cluster; errors of the API server in the body become ContrailctlErrors.

    Raises UsageError (kubeconfig), UnreachableError, ResponseError.
    """
    # Imported here: the Kubernetes client takes longer than everything else, and few commands need it.
    from contrail_config.kube.client import connect
    from contrail_config.kube.configuration.load import load_client_config
    from contrail_config.kube.errors import KubeConfigurationError, KubeError

    try:
        config = await load_client_config(kubeconfig=arguments.kubeconfig, context=arguments.context)
    except KubeConfigurationError as error:
        raise UsageError(str(error)) from error
    try:
        async with connect(config, deadline=arguments.timeout or _REQUEST_TIMEOUT) as client:
            yield client
    except KubeError as error:
        raise (ResponseError if error.status else UnreachableError)(str(error)) from error
