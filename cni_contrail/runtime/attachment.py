"""Parameters of one attachment (CNI specification 1.0.0, section 3, "Attachment Parameters")."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from cni_contrail.protocol.environment import IDENTIFIER, link_name_problem
from cni_contrail.runtime.errors import AttachmentError

_ID_RULE = "must be letters, digits, '_', '.' and '-', the first a letter or a digit"

Arguments = tuple[tuple[str, str], ...]
"""Generic arguments, in order."""


@dataclasses.dataclass(frozen=True, slots=True)
class AttachmentKey:
    """Identifies an attachment within a network: a container has one per interface name.

    Raises AttachmentError.
    """

    container_id: str
    ifname: str

    def __post_init__(self) -> None:
        _check_names(self.container_id, self.ifname)

    def __str__(self) -> str:
        return f"{self.container_id}/{self.ifname}"


@dataclasses.dataclass(frozen=True, slots=True)
class Attachment:
    """A container, the path of its network namespace, and the name of the interface in it.

    `netns` may be empty only for DEL, if the namespace is gone. `args` become CNI_ARGS; `capability_args` are passed to
    plugins that declare the capability. Raises AttachmentError.
    """

    container_id: str
    netns: str
    ifname: str
    args: Arguments = ()
    capability_args: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_names(self.container_id, self.ifname)
        for key, value in self.args:
            _check_argument(key, value)

    @property
    def key(self) -> AttachmentKey:
        """The key that identifies it."""
        return AttachmentKey(self.container_id, self.ifname)


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


def parse_key(text: str) -> AttachmentKey:
    """Returns the key of `CONTAINER/INTERFACE`. Raises AttachmentError."""
    container_id, slash, ifname = text.partition("/")
    if not slash:
        raise AttachmentError(f"attachment {text!r}: must be CONTAINER/INTERFACE")
    return AttachmentKey(container_id, ifname)


def _check_names(container_id: str, ifname: str) -> None:
    if not IDENTIFIER.fullmatch(container_id):
        raise AttachmentError(f"container ID {container_id!r}: {_ID_RULE}")
    if problem := link_name_problem(ifname):
        raise AttachmentError(f"interface name {ifname!r}: {problem}")


def _check_argument(key: str, value: str) -> None:
    if not key or "=" in key or ";" in key + value:
        raise AttachmentError(f"argument {f'{key}={value}'!r}: must be KEY=VALUE without ';'")
