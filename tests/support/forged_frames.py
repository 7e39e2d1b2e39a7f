"""Frames that a pod sends to another one of its network: forged ones, which must not arrive, and honest ones."""

from collections.abc import Callable
from typing import NamedTuple

from cni_contrail.datapath.desired import GATEWAY_MAC
from cni_contrail.datapath.entries import link_local_address
from tests.support import frames

MARK = b"a marked payload"
"""Is in every frame."""

OTHER_MAC = "02:00:00:00:00:66"
_MORE_FRAGMENTS, _SECOND_FRAGMENT = 0x2000, 3
_STAG = 0x88A8
_EXPERIMENTAL = 0x88B5


class Sender(NamedTuple):
    """An interface of a pod."""

    mac: str
    ipv4: str
    ipv6: str

    @property
    def link_local(self) -> str:
        """The address that the pod's kernel derives."""
        return link_local_address(self.mac)


class Surroundings(NamedTuple):
    """Addresses of the network that neither sender nor receiver has: the gateways', and free ones; in both families."""

    gateways: tuple[str, str]
    free: tuple[str, str]


Forge = Callable[[Sender, Sender, Surroundings], bytes]
"""Builds a frame that the first pod sends to the second."""


def _ipv4(pod: Sender, to: Sender, *, mac: str = "", source: str = "", fragment: int = 0) -> bytes:
    packet = frames.ipv4(source or pod.ipv4, to.ipv4, frames.udp(MARK), fragment=fragment)
    return frames.ethernet(mac or pod.mac, to.mac, frames.IPV4, packet)


def _ipv6(pod: Sender, to: Sender, *, mac: str = "", source: str = "", fragment: int | None = None) -> bytes:
    protocol, payload = frames.UDP, frames.udp(MARK)
    if fragment is not None:
        protocol, payload = frames.FRAGMENT, frames.behind_fragment_header(protocol, payload, fragment)
    return frames.ethernet(
        mac or pod.mac, to.mac, frames.IPV6, frames.ipv6(source or pod.ipv6, to.ipv6, protocol, payload)
    )


def _arp(pod: Sender, to: Sender, operation: int, *, sender: str = "", mac: str = "", frame_mac: str = "") -> bytes:
    message = frames.arp(operation, mac or pod.mac, sender or pod.ipv4, to.mac, to.ipv4)
    return frames.ethernet(frame_mac or pod.mac, to.mac, frames.ARP, message + MARK)


def _announcement(pod: Sender, address: str) -> bytes:
    """An ARP request to all that says who has the address."""
    message = frames.arp(frames.REQUEST, pod.mac, address, "00:00:00:00:00:00", address)
    return frames.ethernet(pod.mac, frames.BROADCAST, frames.ARP, message + MARK)


def _neighbour(
    pod: Sender, to: Sender, kind: int, *, target: str = "", source: str = "", behind: int | None = None
) -> bytes:
    """A message of neighbour discovery, if wished behind an extension header of this protocol."""
    protocol = frames.ICMPV6
    body = frames.neighbour_message(kind, source or pod.ipv6, to.ipv6, target or pod.ipv6, pod.mac) + MARK
    if behind == frames.DESTINATION_OPTIONS:
        protocol, body = behind, frames.behind_destination_options(protocol, body)
    elif behind == frames.FRAGMENT:
        protocol, body = behind, frames.behind_fragment_header(protocol, body, 0)
    return frames.ethernet(pod.mac, to.mac, frames.IPV6, frames.ipv6(source or pod.ipv6, to.ipv6, protocol, body))


def _first_fragment(pod: Sender, to: Sender, *, length: int) -> bytes:
    """The first fragment of an ICMPv6 message, which has nothing of it but options; `length` is what these claim."""
    options = frames.behind_destination_options(frames.ICMPV6, b"", padding=MARK + bytes(4), length=length)
    body = frames.behind_fragment_header(frames.DESTINATION_OPTIONS, options, 0)
    return frames.ethernet(pod.mac, to.mac, frames.IPV6, frames.ipv6(pod.ipv6, to.ipv6, frames.FRAGMENT, body))


def _to_all(pod: Sender, payload: bytes) -> bytes:
    return frames.ethernet(pod.mac, frames.BROADCAST, frames.IPV4, frames.ipv4(pod.ipv4, "255.255.255.255", payload))


SPOOFED: dict[str, Forge] = {
    "IPv4 from a free address": lambda pod, to, around: _ipv4(pod, to, source=around.free[0]),
    "IPv4 from the gateway": lambda pod, to, around: _ipv4(pod, to, source=around.gateways[0]),
    "IPv4 from the receiver's own address": lambda pod, to, _: _ipv4(pod, to, source=to.ipv4),
    "IPv4 with another MAC": lambda pod, to, _: _ipv4(pod, to, mac=OTHER_MAC),
    "IPv4 with the gateway's MAC": lambda pod, to, _: _ipv4(pod, to, mac=GATEWAY_MAC),
    "IPv4 in a VLAN": lambda pod, to, _: frames.tagged(_ipv4(pod, to), 7),
    "IPv4 with a priority tag": lambda pod, to, _: frames.tagged(_ipv4(pod, to), 0),
    "IPv4 in a service VLAN": lambda pod, to, _: frames.tagged(_ipv4(pod, to), 7, kind=_STAG),
    "IPv4 in two VLANs": lambda pod, to, _: frames.tagged(frames.tagged(_ipv4(pod, to), 7), 8, kind=_STAG),
    "first fragment of IPv4 from a free address": lambda pod, to, around: _ipv4(
        pod, to, source=around.free[0], fragment=_MORE_FRAGMENTS
    ),
    "later fragment of IPv4 from a free address": lambda pod, to, around: _ipv4(
        pod, to, source=around.free[0], fragment=_SECOND_FRAGMENT
    ),
    "IPv6 from a free address": lambda pod, to, around: _ipv6(pod, to, source=around.free[1]),
    "IPv6 from the gateway": lambda pod, to, around: _ipv6(pod, to, source=around.gateways[1]),
    "IPv6 from another's link-local address": lambda pod, to, _: _ipv6(pod, to, source=to.link_local),
    "IPv6 with another MAC": lambda pod, to, _: _ipv6(pod, to, mac=OTHER_MAC),
    "IPv6 in a VLAN": lambda pod, to, _: frames.tagged(_ipv6(pod, to), 7),
    "first fragment of IPv6 from a free address": lambda pod, to, around: _ipv6(
        pod, to, source=around.free[1], fragment=0
    ),
    "later fragment of IPv6 from a free address": lambda pod, to, around: _ipv6(
        pod, to, source=around.free[1], fragment=_SECOND_FRAGMENT
    ),
    "ARP reply for the gateway": lambda pod, to, around: _arp(pod, to, frames.REPLY, sender=around.gateways[0]),
    "ARP reply for a free address": lambda pod, to, around: _arp(pod, to, frames.REPLY, sender=around.free[0]),
    "ARP request from a free address": lambda pod, to, around: _arp(pod, to, frames.REQUEST, sender=around.free[0]),
    "ARP request from the gateway": lambda pod, to, around: _arp(pod, to, frames.REQUEST, sender=around.gateways[0]),
    "ARP announcement of the gateway": lambda pod, _, around: _announcement(pod, around.gateways[0]),
    "ARP announcement of the receiver's own address": lambda pod, to, _: _announcement(pod, to.ipv4),
    "ARP reply with another MAC inside": lambda pod, to, _: _arp(pod, to, frames.REPLY, mac=OTHER_MAC),
    "ARP reply with another MAC outside": lambda pod, to, _: _arp(pod, to, frames.REPLY, frame_mac=OTHER_MAC),
    "advertisement for the gateway": lambda pod, to, around: _neighbour(
        pod, to, frames.ADVERTISEMENT, target=around.gateways[1]
    ),
    "advertisement for a free address": lambda pod, to, around: _neighbour(
        pod, to, frames.ADVERTISEMENT, target=around.free[1]
    ),
    "advertisement for another behind an extension header": lambda pod, to, around: _neighbour(
        pod, to, frames.ADVERTISEMENT, target=around.free[1], behind=frames.DESTINATION_OPTIONS
    ),
    "advertisement for another in a fragment": lambda pod, to, around: _neighbour(
        pod, to, frames.ADVERTISEMENT, target=around.free[1], behind=frames.FRAGMENT
    ),
    "first fragment that ends before the type of its message": lambda pod, to, _: _first_fragment(pod, to, length=2),
    "first fragment that ends within its options": lambda pod, to, _: _first_fragment(pod, to, length=31),
    "solicitation from another": lambda pod, to, around: _neighbour(
        pod, to, frames.SOLICITATION, source=around.free[1]
    ),
    "router advertisement": lambda pod, to, _: _neighbour(pod, to, frames.ROUTER_ADVERTISEMENT),
    "router advertisement in a fragment": lambda pod, to, _: _neighbour(
        pod, to, frames.ROUTER_ADVERTISEMENT, behind=frames.FRAGMENT
    ),
    "redirect": lambda pod, to, _: _neighbour(pod, to, frames.REDIRECT),
    "another protocol": lambda pod, to, _: frames.ethernet(pod.mac, to.mac, _EXPERIMENTAL, MARK),
}
"""Are dropped and counted as spoofing."""

FLOODED: dict[str, Forge] = {
    "broadcast": lambda pod, _, __: _to_all(pod, frames.udp(MARK)),
    "DHCP answer to all": lambda pod, _, __: _to_all(pod, frames.udp(MARK, source=67, destination=68)),
    "multicast": lambda pod, _, __: frames.ethernet(
        pod.mac, frames.ALL_NODES, frames.IPV6, frames.ipv6(pod.ipv6, "ff02::1", frames.UDP, frames.udp(MARK))
    ),
}
"""Are dropped and counted as broadcast."""

UNCOUNTED: dict[str, Forge] = {
    "IPv6 from the unspecified address": lambda pod, to, _: _ipv6(pod, to, source="::"),
}
"""Are dropped without being counted."""

FORGED = SPOOFED | FLOODED | UNCOUNTED

HONEST: dict[str, Forge] = {
    "IPv4": lambda pod, to, _: _ipv4(pod, to),
    "fragment of IPv4": lambda pod, to, _: _ipv4(pod, to, fragment=_MORE_FRAGMENTS),
    "IPv6": lambda pod, to, _: _ipv6(pod, to),
    "fragment of IPv6": lambda pod, to, _: _ipv6(pod, to, fragment=_SECOND_FRAGMENT),
    "later fragment of a message of ICMPv6": lambda pod, to, _: frames.ethernet(
        pod.mac,
        to.mac,
        frames.IPV6,
        frames.ipv6(
            pod.ipv6, to.ipv6, frames.FRAGMENT, frames.behind_fragment_header(frames.ICMPV6, MARK, _SECOND_FRAGMENT)
        ),
    ),
    "IPv6 from the link-local address": lambda pod, to, _: _ipv6(pod, to, source=pod.link_local),
    "ARP request": lambda pod, to, _: _arp(pod, to, frames.REQUEST),
    "ARP reply": lambda pod, to, _: _arp(pod, to, frames.REPLY),
    "ARP announcement": lambda pod, _, __: _announcement(pod, pod.ipv4),
    "advertisement": lambda pod, to, _: _neighbour(pod, to, frames.ADVERTISEMENT),
    "advertisement of the link-local address": lambda pod, to, _: _neighbour(
        pod, to, frames.ADVERTISEMENT, target=pod.link_local
    ),
    "solicitation": lambda pod, to, _: _neighbour(pod, to, frames.SOLICITATION, target=to.ipv6),
}
"""Arrive."""
