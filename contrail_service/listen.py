"""Listen addresses: `HOST:PORT`, an IPv6 host in brackets, port 0 for any free port.

Imports the standard library only: the node daemon, which loads neither aiohttp nor msgspec, parses its addresses here.
"""

import re
from typing import NamedTuple

from contrail_service.errors import ConfigurationError

_ADDRESS = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.%]+)\]|(?P<host>[^\[\]:/\s]+)):(?P<port>[0-9]{1,5})")


class ListenAddress(NamedTuple):
    """A host name or address and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_listen(text: str, *, key: str) -> ListenAddress:
    """Returns the address of a setting; `key` names the setting in errors. Raises ConfigurationError."""
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ConfigurationError(f"{key}: {text[:200]!r} is not HOST:PORT, such as 127.0.0.1:8083 or [::1]:8083")
    return ListenAddress(match["v6"] or match["host"], int(match["port"]))


def parse_optional_listen(text: str | None, *, key: str) -> ListenAddress | None:
    """The same for an optional setting: None if it is absent."""
    return None if text is None else parse_listen(text, key=key)
