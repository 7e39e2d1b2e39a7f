"""HTTP proxy from the environment, by the rules of client-go (Go's `golang.org/x/net/http/httpproxy`).

`HTTPS_PROXY` applies to https servers, `HTTP_PROXY` to http ones, upper case before lower case. A proxy without a
scheme is an http proxy. `localhost` and loopback addresses are always reached directly, as are the hosts of `NO_PROXY`:
a comma-separated list of IP addresses, CIDRs, names (with all names below them), names that begin with a dot or `*.`
(only the names below), each with or without a port, or `*` for every host.

Differs from client-go: `socks5` is not supported.
"""

import contextlib
import ipaddress
from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, urlsplit

from contrail_config.kube.errors import KubeConfigurationError

_PORTS: Final = {"https": 443, "http": 80}
_VARIABLES: Final = {"https": "HTTPS_PROXY", "http": "HTTP_PROXY"}
_EXCEPTIONS: Final = "NO_PROXY"


def proxy_from_environment(server: str, environment: Mapping[str, str]) -> str | None:
    """Returns the URL of the proxy for the server's URL; None if it is reached directly.

    Raises KubeConfigurationError, which names the variable but not its value, since that may have a password.
    """
    target = urlsplit(server)
    variable = _VARIABLES[target.scheme]
    text = _value(environment, variable).strip()
    if not text or _is_direct(target, _value(environment, _EXCEPTIONS)):
        return None
    proxy = text if "://" in text else f"http://{text}"
    try:
        url = urlsplit(proxy)
        usable = url.scheme in _PORTS and bool(url.hostname) and url.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise KubeConfigurationError(f"{variable}: not the URL of an http or https proxy")
    return proxy


def _value(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.lower(), "")


def _is_direct(target: SplitResult, exceptions: str) -> bool:
    host = (target.hostname or "").rstrip(".")
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    port = target.port or _PORTS[target.scheme]
    entries = [entry.strip().lower() for entry in exceptions.split(",")]
    return any(_matches(entry, host, address, port) for entry in entries if entry)


def _matches(entry: str, host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None, port: int) -> bool:
    if entry == "*":
        return True
    with contextlib.suppress(ValueError):
        if "/" in entry:
            network = ipaddress.ip_network(entry, strict=False)
            return address is not None and address in network
    name, entry_port = _split_port(entry)
    if entry_port is not None and entry_port != str(port):
        return False
    if (exact := _address(name)) is not None:
        return exact == address
    if address is not None or not name:
        return False
    below = name.removeprefix("*")
    return host.endswith(below) if below.startswith(".") else host == below or host.endswith(f".{below}")


def _split_port(entry: str) -> tuple[str, str | None]:
    """Returns host and port of `host:port`, `[address]:port` or a host alone; an IPv6 address alone has no port."""
    host, colon, port = entry.rpartition(":")
    if not colon or entry.endswith("]") or _address(entry) is not None:
        return entry.strip("[]"), None
    return host.strip("[]"), port


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(text)
    return None
