"""Names that users give to interfaces: those that the kernel takes, less those that have a meaning already."""

from typing import Any

from manager.parsing.errors import BadValueError
from manager.parsing.quoting import quoted

_LONGEST = 15
_TAKEN = {
    "eth0": "belongs to index 0",
    "lo": "is the loopback's",
    ".": "is no file name",
    "..": "is no file name",
    "all": "means every interface to the kernel",
    "default": "means interfaces to come to the kernel",
}
_FORBIDDEN = frozenset("/:%" + '{}"\\')
"""What the kernel takes for something else (`%`: a free number), or upstream's plugin cannot read in an annotation."""

_LISTED = " ".join(sorted(_FORBIDDEN))


def interface_name(value: Any) -> str:
    """The value, if it can be an interface's name: 1 to 15 printable ASCII characters. Raises BadValueError."""
    if not isinstance(value, str) or not 1 <= len(value.encode(errors="replace")) <= _LONGEST:
        raise BadValueError(f"{quoted(value)} is no interface name: 1 to {_LONGEST} bytes")
    if not all("!" <= character <= "~" for character in value) or not _FORBIDDEN.isdisjoint(value):
        raise BadValueError(f"{quoted(value)} is no interface name: printable ASCII without blank and {_LISTED}")
    if value in _TAKEN:
        raise BadValueError(f"{quoted(value)} {_TAKEN[value]}, so no interface can be named so")
    return value
