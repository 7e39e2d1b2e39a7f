"""Target of a probe that is no temporary pod: an address, and a port if it is asked by TCP."""

from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit


class Target(NamedTuple):
    """An address; without a port it is asked by ICMP echo requests."""

    address: str
    port: int = 0

    @property
    def family(self) -> int:
        """4 or 6."""
        return 6 if ":" in self.address else 4

    def __str__(self) -> str:
        return f"{self.address} port {self.port}" if self.port else self.address


def parse_target(text: str) -> Target:
    """Returns the target of ADDRESS, IPV4:PORT or [IPV6]:PORT. Raises ValueError."""
    try:
        return Target(str(ip_address(text)))
    except ValueError:
        parts = urlsplit(f"//{text}")
        if parts.hostname is None or not parts.port or parts.netloc.rpartition(":")[0].strip("[]") != parts.hostname:
            raise
        return Target(str(ip_address(parts.hostname)), parts.port)
