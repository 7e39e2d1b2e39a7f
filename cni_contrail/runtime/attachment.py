"""The parameters of one attachment (CNI specification 1.0.0, section 3, "Attachment Parameters")."""

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from cni_contrail.runtime.errors import AttachmentError

_CONTAINER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]*")
_IFNAME_LIMIT = 15
_IFNAME_FORBIDDEN = re.compile(r"[/:\s]")

Arguments = tuple[tuple[str, str], ...]
"""Generic arguments, in order."""


@dataclasses.dataclass(frozen=True, slots=True)
class Attachment:
    """A container, the path of its network namespace, and the name of the interface in it.

    `netns` may be empty for DEL alone, when the namespace is gone. `args` become CNI_ARGS; `capability_args` reach the
    plugins that declare them. Raises AttachmentError.
    """

    container_id: str
    netns: str
    ifname: str
    args: Arguments = ()
    capability_args: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _CONTAINER_ID.fullmatch(self.container_id):
            raise AttachmentError(f"container ID {self.container_id!r}: {_ID_RULE}")
        _check_ifname(self.ifname)
        for key, value in self.args:
            _check_argument(key, value)

    def environment(self, command: str, plugin_dirs: Sequence[str]) -> dict[str, str]:
        """The variables of a call (section 2, "Parameters")."""
        return {
            "CNI_COMMAND": command,
            "CNI_CONTAINERID": self.container_id,
            "CNI_NETNS": self.netns,
            "CNI_IFNAME": self.ifname,
            "CNI_ARGS": ";".join(f"{key}={value}" for key, value in self.args),
            "CNI_PATH": os.pathsep.join(plugin_dirs),
        }


_ID_RULE = "must be letters, digits, '_', '.' and '-', the first a letter or a digit"


def parse_args(text: str) -> Arguments:
    """Returns the arguments of `KEY=VALUE;KEY=VALUE`. Raises AttachmentError."""
    pairs = []
    for part in filter(None, text.split(";")):
        key, equals, value = part.partition("=")
        if not equals:
            raise AttachmentError(f"argument {part!r}: must be KEY=VALUE")
        _check_argument(key, value)
        pairs.append((key, value))
    return tuple(pairs)


def _check_argument(key: str, value: str) -> None:
    if not key or "=" in key or ";" in key + value:
        raise AttachmentError(f"argument {f'{key}={value}'!r}: must be KEY=VALUE without ';'")


def _check_ifname(name: str) -> None:
    if not 0 < len(os.fsencode(name)) <= _IFNAME_LIMIT:
        raise AttachmentError(f"interface name {name!r}: must have 1 to {_IFNAME_LIMIT} bytes")
    if name in (".", "..") or _IFNAME_FORBIDDEN.search(name):
        raise AttachmentError(f"interface name {name!r}: must not be '.' or '..', nor hold '/', ':' or blanks")
