"""Host names by which browsers may reach the API, as protection against DNS rebinding.

A page of another site can give its own name an address of this machine, and its scripts then count as same-origin here.
Their requests carry that name in `Host`, so requests with an unknown name are rejected. An IP address in `Host` was not
resolved by anybody, so it is always accepted.
"""

import ipaddress
import re
from collections.abc import Iterable

from manager.parsing.errors import BadValueError

_CLUSTER_SUFFIXES = (".svc", ".svc.cluster.local")
_HOST = re.compile(r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<name>[^\[\]:]+))(?::[0-9]{1,5})?")
_NAME = re.compile(r"(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
_MAX_LENGTH = 260  # of a name and a port


class HostNames:
    """Loopback names, IP addresses, Service names of a cluster, and `names`, of which `*.NAME` are all below NAME."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        known = [name.lower().rstrip(".") for name in names]
        self._exact = {"localhost", *(name for name in known if not name.startswith("*."))}
        below = (name.removeprefix("*") for name in known if name.startswith("*."))
        self._suffixes = (".localhost", *_CLUSTER_SUFFIXES, *below)

    def allow(self, host: str) -> bool:
        """Returns whether a request with this `Host` header is served."""
        match = _HOST.fullmatch(host) if len(host) <= _MAX_LENGTH else None
        if match is None:
            return False
        if match["v6"] is not None:
            return _is_address(match["v6"])
        name = match["name"].lower().rstrip(".")
        return name in self._exact or name.endswith(self._suffixes) or _is_address(name)


def host_name_pattern(text: str) -> str:
    """Returns a setting that is a host name, or `*.` and a host name. Raises BadValueError."""
    if len(text) > _MAX_LENGTH or _NAME.fullmatch(text.lower()) is None:
        raise BadValueError(f"{text[:200]!r} is neither a host name nor *.NAME")
    return text


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
