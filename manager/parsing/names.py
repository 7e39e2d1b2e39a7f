"""Validation of names that users write: namespaces, Kubernetes objects and interfaces.

Object names become parts of file names, URLs and virtual machine names, so they must be valid before they are used.
"""

import re
from typing import Any

from manager.parsing.errors import BadValueError
from manager.parsing.json_text import quote_hint
from manager.parsing.quoting import quoted

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MAX_SUBDOMAIN = 253

_MAX_INTERFACE_NAME = 15
_RESERVED_INTERFACE_NAMES = {
    "eth0": "is the name of index 0",
    "lo": "is the loopback interface",
    ".": "is not a valid file name",
    "..": "is not a valid file name",
    "all": "means all interfaces in sysctl paths",
    "default": "means future interfaces in sysctl paths",
}
_FORBIDDEN_IN_INTERFACE_NAME = frozenset("/:%" + '{}"\\')
"""Characters with a meaning for the kernel (`%` is a number that it chooses) or in upstream's annotation syntax."""

_FORBIDDEN_LISTED = " ".join(sorted(_FORBIDDEN_IN_INTERFACE_NAME))


def namespace_name(value: Any) -> str:
    """Returns the value if it is a valid namespace name (RFC 1123 label), else raises BadValueError."""
    if not isinstance(value, str) or not _LABEL.fullmatch(value):
        raise _bad(value, "namespace name: use at most 63 of a-z, 0-9 and '-'; it must not start or end with '-'")
    return value


def object_name(value: Any) -> str:
    """Returns the value if it is a valid name of a pod or NAD (RFC 1123 subdomain), else raises BadValueError."""
    if not isinstance(value, str) or len(value) > _MAX_SUBDOMAIN or not _SUBDOMAIN.fullmatch(value):
        form = "object name: use at most 253 of a-z, 0-9, '-' and '.'; it must not start or end with '-' or '.'"
        raise _bad(value, form)
    return value


def pod_name(value: Any) -> str:
    """Like `object_name`, but accepts capitals: the multi-network design's own example manifest has a pod with them."""
    object_name(value.lower() if isinstance(value, str) and value.isascii() else value)
    return str(value)


def interface_name(value: Any) -> str:
    """Returns the value if it is a valid interface name, else raises BadValueError."""
    if not isinstance(value, str) or not 1 <= len(value.encode(errors="replace")) <= _MAX_INTERFACE_NAME:
        raise BadValueError(f"{quoted(value)} is not a valid interface name: use 1 to {_MAX_INTERFACE_NAME} bytes")
    if not all("!" <= character <= "~" for character in value) or not _FORBIDDEN_IN_INTERFACE_NAME.isdisjoint(value):
        form = f"use printable ASCII without spaces and {_FORBIDDEN_LISTED}"
        raise BadValueError(f"{quoted(value)} is not a valid interface name: {form}")
    # "." and ".." would break paths such as /sys/class/net/NAME.
    if value in _RESERVED_INTERFACE_NAMES:
        raise BadValueError(f"{quoted(value)} is a reserved interface name: it {_RESERVED_INTERFACE_NAMES[value]}")
    return value


def _bad(value: Any, form: str) -> BadValueError:
    return BadValueError(f"{quoted(value)} is not a valid {form}{quote_hint(value) if isinstance(value, str) else ''}")
