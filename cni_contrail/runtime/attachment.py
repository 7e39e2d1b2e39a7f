"""The parameters of one attachment (CNI specification 1.0.0, section 3, "Attachment Parameters")."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from cni_contrail.protocol.environment import IDENTIFIER, link_name_problem
from cni_contrail.runtime.errors import AttachmentError

_ID_RULE = "must be letters, digits, '_', '.' and '-', the first a letter or a digit"

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
        if not IDENTIFIER.fullmatch(self.container_id):
            raise AttachmentError(f"container ID {self.container_id!r}: {_ID_RULE}")
        if problem := link_name_problem(self.ifname):
            raise AttachmentError(f"interface name {self.ifname!r}: {problem}")
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
