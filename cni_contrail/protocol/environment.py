"""Parses the CNI_* environment variables of one call.

Validated in the order of the reference library (`skel`): variable by variable; a malformed one fails at once, missing
ones together in one error. CNI_PATH is required as there, though this plugin does not use it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from cni_contrail.errors import Code, PluginError
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.quoting import cut

IDENTIFIER = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.\-]*", re.ASCII)
"""Pattern of container IDs and network names."""

NOT_UTF_8 = re.compile("[\ud800-\udfff]")
"""Pattern of lone surrogates, to which `os.environ` decodes bytes that are not UTF-8."""

_INVALID_IN_LINK_NAME = re.compile(r"[/:\s]")
_ATTACHMENT = ("CNI_COMMAND", "CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH")
_REQUIRED = {
    "ADD": _ATTACHMENT,
    "CHECK": _ATTACHMENT,
    # The specification allows DEL without CNI_NETNS: the sandbox may be gone.
    "DEL": tuple(name for name in _ATTACHMENT if name != "CNI_NETNS"),
    "GC": ("CNI_COMMAND", "CNI_PATH"),
    "STATUS": ("CNI_COMMAND", "CNI_PATH"),
}


class Call(NamedTuple):
    """One call of the runtime; variables that the command does not need may be empty.

    `args` are the pairs of CNI_ARGS, `malformed_arg` its last element that is not a pair, empty if there is none.
    """

    command: str
    container_id: str
    netns: str
    ifname: str
    args: Mapping[str, str]
    malformed_arg: str
    own_netns_allowed: bool


def read_call(environment: Mapping[str, str]) -> Call:
    """Parses the variables; raises `PluginError` with code 4 for a missing or malformed one."""
    command = environment.get("CNI_COMMAND", "")
    required = _REQUIRED.get(command, ("CNI_COMMAND",))
    container_id, ifname = environment.get("CNI_CONTAINERID", ""), environment.get("CNI_IFNAME", "")
    if container_id and "CNI_CONTAINERID" in required:
        _check_container_id(container_id)
    if ifname and "CNI_IFNAME" in required:
        _check_ifname(ifname)
    missing = [name for name in required if not environment.get(name)]
    if missing:
        raise PluginError(Code.INVALID_ENVIRONMENT, f"required env variables [{','.join(missing)}] missing")
    args, malformed_arg = read_args(environment.get("CNI_ARGS", ""))
    return Call(
        command=command,
        container_id=container_id,
        netns=environment.get("CNI_NETNS", ""),
        ifname=ifname,
        args=args,
        malformed_arg=malformed_arg,
        own_netns_allowed=environment.get("CNI_NETNS_OVERRIDE", "").upper() in ("TRUE", "1"),
    )


def reject_malformed_args(call: Call) -> None:
    """Raises `PluginError` with code 4 for an element of CNI_ARGS that is neither K=V nor empty."""
    if call.malformed_arg:
        raise PluginError(Code.INVALID_ENVIRONMENT, "CNI_ARGS must be K=V;K=V", f"{cut(call.malformed_arg)} has no =")


def read_args(text: str) -> tuple[dict[str, str], str]:
    """Parses CNI_ARGS, `K=V;K=V`; also returns the last element without `=`, empty if there is none.

    The last of duplicate keys wins, since meta plugins append the runtime's.
    """
    args: dict[str, str] = {}
    malformed = ""
    for element in text.split(";"):
        key, equals, value = element.partition("=")
        if equals:
            args[key.strip()] = value
        else:
            malformed = key.strip() or malformed
    return args, malformed


def link_name_problem(name: str) -> str | None:
    """Returns why the name is not a valid link name, None if it is; the kernel's rule, and that of CNI_IFNAME."""
    if not name:
        return "interface name is empty"
    if len(os.fsencode(name)) > 15:  # IFNAMSIZ less its NUL, in bytes
        return "interface name is too long"
    if name in (".", ".."):
        return "interface name is . or .."
    if NOT_UTF_8.search(name):
        return "interface name is not UTF-8"
    if _INVALID_IN_LINK_NAME.search(name):
        return "interface name contains / or : or whitespace characters"
    return None


def _check_container_id(value: str) -> None:
    if not IDENTIFIER.fullmatch(value):
        raise PluginError(
            Code.INVALID_ENVIRONMENT, "invalid characters in containerID", f"CNI_CONTAINERID is {cut(value)}"
        )


def _check_ifname(value: str) -> None:
    if problem := link_name_problem(value):
        raise PluginError(Code.INVALID_ENVIRONMENT, problem, f"CNI_IFNAME is {cut(value)}")
