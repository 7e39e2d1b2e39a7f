"""Command-line arguments and their defaults."""

import argparse
import contextlib

from contrailctl.cni_arguments import add_cni
from contrailctl.output import FORMATS

DEFAULT_MANAGER = "http://127.0.0.1:8083"
DEFAULT_AGENT = "http://127.0.0.1:9091"
DEFAULT_TIMEOUT = 10.0

_KINDS = {"networks": "network", "pods": "pod", "interfaces": "interface", "ports": "port", "events": "event"}


def parse_arguments(argv: list[str], *, version: str) -> argparse.Namespace:
    """Returns the arguments, with defaults for those of other commands; exits with status 2 if they are invalid."""
    # Options are suppressed by default (see _common_options), so defaults are set here.
    unset = {"manager": None, "agent": None, "output": "table", "timeout": None, "cluster_name": "k8s"}
    return _parser(version).parse_args(argv, argparse.Namespace(**unset))


def _parser(version: str) -> argparse.ArgumentParser:
    common = _common_options()
    parser = argparse.ArgumentParser(
        prog="contrailctl",
        description="Shows networks, pods and their interfaces, and runs CNI calls.",
        parents=[common],
    )
    parser.add_argument("--version", action="version", version=f"contrailctl {version}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_get(commands, common)
    _add_describe(commands, common)
    commands.add_parser("status", help="show readiness and object counts of manager and agent", parents=[common])
    add_cni(commands, common)
    return parser


def _common_options() -> argparse.ArgumentParser:
    """Options that are valid before and after the command; absent ones set nothing, so one does not reset the other."""
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--manager", metavar="URL", help=f"default: $CONTRAIL_MANAGER or {DEFAULT_MANAGER}")
    common.add_argument("--agent", metavar="URL", help=f"default: $CONTRAIL_AGENT or {DEFAULT_AGENT}")
    common.add_argument("--cluster-name", metavar="NAME", help="cluster in virtual machine names of an agent (k8s)")
    common.add_argument("-o", "--output", choices=FORMATS, help="default: table")
    common.add_argument(
        "--timeout", metavar="SECONDS", type=_seconds, help="timeout of a request, a cni operation, or each step of gc"
    )
    return common


def _add_get(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser) -> None:
    get = commands.add_parser("get", help="list networks, pods, interfaces, ports or events")
    kinds = get.add_subparsers(dest="kind", required=True, metavar="KIND")
    for kind, singular in _KINDS.items():
        command = kinds.add_parser(kind, aliases=[singular], help=f"list {kind}", parents=[common])
        command.set_defaults(kind=kind)
        command.add_argument("name", nargs="?", metavar="NAME", help="only objects with this name")
        scope = command.add_mutually_exclusive_group()
        scope.add_argument("-n", "--namespace", help="only objects of this namespace")
        scope.add_argument("-A", "--all-namespaces", action="store_true", help="objects of all namespaces (default)")


def _add_describe(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    describe = commands.add_parser("describe", help="show the details of one pod")
    kinds = describe.add_subparsers(dest="kind", required=True, metavar="KIND")
    pod = kinds.add_parser("pod", help="describe a pod", parents=[common])
    pod.add_argument("pod", metavar="NAMESPACE/NAME")


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        seconds = float(text)
        if 0 < seconds < 1e6:
            return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0 and below 1000000")
