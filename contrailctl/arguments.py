"""Command-line arguments and their defaults."""

import argparse
import contextlib
import os

from cni_contrail.link.host_side import DIRECTORY
from cni_contrail.runtime.attachment import AttachmentKey, parse_key
from cni_contrail.runtime.cache import DEFAULT_DIR
from cni_contrail.runtime.errors import AttachmentError
from contrailctl.adds import DEFAULT_DAEMON
from contrailctl.check.arguments import add_check
from contrailctl.cluster.arguments import add_status, add_sysdump, add_trace
from contrailctl.output import FORMATS

DEFAULT_MANAGER = "http://127.0.0.1:8083"
DEFAULT_AGENT = "http://127.0.0.1:9091"
DEFAULT_TIMEOUT = 10.0
SHELLS = ("bash", "zsh", "fish")

_KINDS = {"networks": "network", "pods": "pod", "interfaces": "interface", "ports": "port", "events": "event"}
_WATCHED = ("networks", "pods", "events")
_ATTACHMENT_OPERATIONS = {"add": "attach", "check": "check", "del": "detach"}
_PLUGIN_DIRS = ("/opt/cni/bin", "/usr/lib/cni")


def parse_arguments(argv: list[str], *, program: str, version: str) -> argparse.Namespace:
    """Returns the arguments, with defaults for those of other commands; exits with status 2 if they are invalid."""
    # Options are suppressed by default (see _common_options), so defaults are set here.
    unset = {"manager": None, "agent": None, "output": "table", "timeout": None, "cluster_name": "k8s"}
    parser = make_parser(program=program, version=version)
    if "_ARGCOMPLETE" in os.environ:
        from contrailctl.completion import complete_words  # only when a shell asks

        complete_words(parser)
    return parser.parse_args(argv, argparse.Namespace(**unset, watch=False, output_watch_events=False))


def make_parser(*, program: str, version: str) -> argparse.ArgumentParser:
    """Returns the parser of all commands."""
    common = _common_options()
    parser = argparse.ArgumentParser(
        prog=program,
        description="Shows networks, pods and their interfaces, checks connectivity, and runs CNI calls.",
        parents=[common],
    )
    parser.add_argument("--version", action="version", version=f"contrailctl {version}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_get(commands, common)
    _add_describe(commands, common)
    add_status(commands, common)
    add_trace(commands, common)
    add_sysdump(commands, common)
    _add_cni(commands, common)
    _add_datapath(commands, common)
    add_check(commands, common)
    completion = commands.add_parser("completion", help="print the code by which a shell completes commands")
    completion.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))
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
    get = commands.add_parser("get", help="list networks, pods, interfaces, ports, events or the datapath")
    kinds = get.add_subparsers(dest="kind", required=True, metavar="KIND")
    for kind, singular in _KINDS.items():
        command = kinds.add_parser(kind, aliases=[singular], help=f"list {kind}", parents=[common])
        command.set_defaults(kind=kind)
        command.add_argument("name", nargs="?", metavar="NAME", help="only objects with this name")
        scope = command.add_mutually_exclusive_group()
        scope.add_argument("-n", "--namespace", help="only objects of this namespace")
        scope.add_argument("-A", "--all-namespaces", action="store_true", help="objects of all namespaces (default)")
        if kind in _WATCHED:
            command.add_argument("-w", "--watch", action="store_true", help="then print each change, until interrupted")
            command.add_argument(
                "--output-watch-events",
                action="store_true",
                help="with --watch: say which objects are added, modified or deleted",
            )
    kinds.add_parser("datapath", help="list the networks of a node's datapath, from its agent", parents=[common])
    adds = kinds.add_parser("adds", help="list the last ADDs of a pod, from the daemon of its node", parents=[common])
    adds.add_argument("name", nargs="?", metavar="NAME", help="of the pod")
    adds.add_argument("-n", "--namespace", help="of the pod")
    adds.add_argument("--daemon", metavar="URL", default=DEFAULT_DAEMON, help=f"default: {DEFAULT_DAEMON}")


def _add_describe(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    describe = commands.add_parser("describe", help="show the details of one pod")
    kinds = describe.add_subparsers(dest="kind", required=True, metavar="KIND")
    pod = kinds.add_parser("pod", help="describe a pod", parents=[common])
    pod.add_argument("pod", metavar="NAMESPACE/NAME")


def _add_cni(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser) -> None:
    """Adds the command `cni` and its operations."""
    cni = commands.add_parser("cni", help="run CNI operations on a network namespace, as a container runtime does")
    operations = cni.add_subparsers(dest="operation", required=True, metavar="OPERATION")
    for operation, text in _ATTACHMENT_OPERATIONS.items():
        command = operations.add_parser(operation, help=f"{text} a network namespace", parents=[common])
        _add_network(command)
        _add_attachment(command)
        _add_cache(command)
    listing = operations.add_parser("list", help="list cached attachments", parents=[common])
    listing.add_argument("--container-id", metavar="ID", help="only attachments of this container")
    _add_cache(listing)
    collect = operations.add_parser("gc", help="detach stale attachments of a network", parents=[common])
    _add_network(collect)
    _add_valid(collect)
    _add_cache(collect)
    status = operations.add_parser("status", help="show whether a network is ready for add", parents=[common])
    _add_network(status)
    status.set_defaults(cache_dir=DEFAULT_DIR)  # unused, but a Runtime needs one


def _add_datapath(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser
) -> None:
    datapath = commands.add_parser("datapath", help="remove the datapath from this node")
    operations = datapath.add_subparsers(dest="operation", required=True, metavar="OPERATION")
    purge = operations.add_parser(
        "purge",
        help="remove all networks of this node, and what index 0 has in its own namespace",
        description="Removes all networks of this node, as root. Stop contrail-cnid first, or it makes them again.",
        parents=[common],
    )
    purge.add_argument("--netns-dir", metavar="DIR", default=DIRECTORY, help=f"default: {DIRECTORY}")
    purge.add_argument("--force", action="store_true", help="also what has ports, whose pods are without traffic then")


def _add_network(command: argparse.ArgumentParser) -> None:
    command.add_argument("network", metavar="NETWORK", help="a file, or a name in the configuration directory")
    command.add_argument("--conf-dir", metavar="DIR", default="/etc/cni/net.d", help="default: /etc/cni/net.d")
    # As for cnitool; the option takes precedence.
    plugins = os.environ.get("CNI_PATH") or os.pathsep.join(_PLUGIN_DIRS)
    command.add_argument("--bin-dir", metavar="DIR:..", default=plugins, help="default: $CNI_PATH or %(default)s")


def _add_attachment(command: argparse.ArgumentParser) -> None:
    command.add_argument("netns", metavar="NETNS", help="path of a network namespace, or its name below /run/netns")
    command.add_argument("--container-id", metavar="ID", help="default: from the namespace's path, as by cnitool")
    command.add_argument("--ifname", metavar="NAME", default="eth0", help="default: eth0")
    command.add_argument("--args", metavar="K=V;..", help="CNI_ARGS; default of check and del: those of add")
    command.add_argument("--capability-args", metavar="JSON", help="JSON object; default of check and del: that of add")


def _add_valid(command: argparse.ArgumentParser) -> None:
    """An explicit option for no valid attachments: a forgotten option must not detach everything."""
    valid = command.add_mutually_exclusive_group(required=True)
    valid.add_argument(
        "--valid", metavar="CONTAINER/IFNAME", type=_attachment_key, nargs="+", action="extend", help="keep these"
    )
    valid.add_argument("--none-valid", dest="valid", action="store_const", const=[], help="keep none")


def _add_cache(command: argparse.ArgumentParser) -> None:
    command.add_argument("--cache-dir", metavar="DIR", default=DEFAULT_DIR, help=f"default: {DEFAULT_DIR}")


def _attachment_key(text: str) -> AttachmentKey:
    try:
        return parse_key(text)
    except AttachmentError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        seconds = float(text)
        if 0 < seconds < 1e6:
            return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0 and below 1000000")
