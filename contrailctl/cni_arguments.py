"""Command-line arguments of `contrailctl cni`."""

import argparse
import os

from cni_contrail.runtime.attachment import AttachmentKey, parse_key
from cni_contrail.runtime.cache import DEFAULT_DIR
from cni_contrail.runtime.errors import AttachmentError

_ATTACHMENT_OPERATIONS = {"add": "attach", "check": "check", "del": "detach"}
_PLUGIN_DIRS = ("/opt/cni/bin", "/usr/lib/cni")


def add_cni(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", common: argparse.ArgumentParser) -> None:
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
