"""What the nodes send to each other, as a capture on the fabric shows it."""

from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from typing import NamedTuple

from tests.support import frames

_VXLAN_PORT = 4789
_UNDERLAY_ICMPV6 = range(130, 144)  # neighbour discovery and multicast listeners
_FLOODED_ICMPV6 = range(133, 138)  # neighbour discovery


class Tunnelled(NamedTuple):
    """A frame in a tunnel between two nodes (addresses)."""

    source: str
    target: str
    vni: int
    frame: bytes

    @property
    def is_flooded(self) -> bool:
        """Whether it is to several receivers, or of a protocol by which pods ask for each other."""
        kind = int.from_bytes(self.frame[12:14])
        if self.frame[0] & 1 or kind not in (frames.IPV4, frames.IPV6):
            return True
        return kind == frames.IPV6 and self.frame[20] == frames.ICMPV6 and self.frame[54] in _FLOODED_ICMPV6


def tunnelled(captured: Iterable[bytes]) -> Iterator[Tunnelled]:
    """Yields what is in tunnels; leaves out ARP and neighbour discovery of the nodes; fails at everything else."""
    for frame in captured:
        kind = int.from_bytes(frame[12:14])
        packet = frame[14:]
        if kind == frames.ARP:
            continue
        assert kind in (frames.IPV4, frames.IPV6), frame.hex()
        if kind == frames.IPV4:
            protocol, addresses, datagram = packet[9], packet[12:20], packet[(packet[0] & 15) * 4 :]
        else:
            protocol, addresses, datagram = packet[6], packet[8:40], packet[40:]
            if _is_of_underlay(protocol, datagram):
                continue
        assert protocol == frames.UDP, frame.hex()
        assert int.from_bytes(datagram[2:4]) == _VXLAN_PORT, frame.hex()
        half = len(addresses) // 2
        source, target = (str(ip_address(each)) for each in (addresses[:half], addresses[half:]))
        yield Tunnelled(source, target, int.from_bytes(datagram[12:15]), datagram[16:])


def _is_of_underlay(protocol: int, payload: bytes) -> bool:
    """Whether the IPv6 packet is neighbour discovery or a multicast listener's report, which has an option before."""
    return protocol == 0 or (protocol == frames.ICMPV6 and payload[0] in _UNDERLAY_ICMPV6)
