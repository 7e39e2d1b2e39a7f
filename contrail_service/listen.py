"""Addresses to listen on: `HOST:PORT`, an IPv6 host in brackets, port 0 for any free one."""

import os
import re
from typing import NamedTuple

from aiohttp import web

from contrail_service.errors import ConfigurationError, ListenError

_ADDRESS = re.compile(r"^(?:\[(?P<v6>[0-9A-Fa-f:.%]+)\]|(?P<host>[^\[\]:/\s]+)):(?P<port>\d{1,5})$")


_BACKLOG = 1024  # a node that boots starts its pods all at once


class ListenAddress(NamedTuple):
    """A host name or address and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_listen(text: str, *, key: str) -> ListenAddress:
    """Returns the address of a setting; `key` names it in errors. Raises ConfigurationError."""
    match = _ADDRESS.match(text)
    if match is None or int(match["port"]) > 65535:
        raise ConfigurationError(f"{key}: {text!r} is no HOST:PORT, such as 127.0.0.1:8083 or [::1]:8083")
    return ListenAddress(match["v6"] or match["host"], int(match["port"]))


def parse_optional_listen(text: str | None, *, key: str) -> ListenAddress | None:
    """The same for a setting that may be absent: None then. Raises ConfigurationError."""
    return None if text is None else parse_listen(text, key=key)


async def serve_tcp(runner: web.AppRunner, address: ListenAddress) -> ListenAddress:
    """Serves a set-up application there and returns the address with the port really taken. Raises ListenError."""
    site = web.TCPSite(runner, address.host, address.port, backlog=_BACKLOG)
    try:
        await site.start()
    except OSError as error:
        raise ListenError(f"cannot listen on {address}: {_words(error)}") from error
    bound: tuple[str, int] = runner.addresses[-1][:2]
    return ListenAddress(address.host, bound[1])


def _words(error: OSError) -> str:
    """The system's own words: asyncio puts others round them, with the address once more."""
    number = error.errno or 0
    return os.strerror(number) if number > 0 else error.strerror or str(error)
