"""Ethernet frames, built byte by byte, and packet sockets that send and receive them in a network namespace."""

import select
import socket
import struct
import time
from ipaddress import ip_address

from tests.support.netns import Netns

IPV4, ARP, IPV6, VLAN = 0x0800, 0x0806, 0x86DD, 0x8100
UDP, FRAGMENT, ICMPV6, DESTINATION_OPTIONS = 17, 44, 58, 60
REQUEST, REPLY = 1, 2  # ARP operations
SOLICITATION, ADVERTISEMENT, ROUTER_ADVERTISEMENT, REDIRECT = 135, 136, 134, 137
BROADCAST = "ff:ff:ff:ff:ff:ff"
ALL_NODES = "33:33:00:00:00:01"
_ALL_PROTOCOLS = 3  # ETH_P_ALL


def mac_bytes(text: str) -> bytes:
    """A MAC address in network byte order."""
    return bytes.fromhex(text.replace(":", ""))


def ethernet(source: str, destination: str, kind: int, payload: bytes) -> bytes:
    """A frame."""
    return mac_bytes(destination) + mac_bytes(source) + struct.pack("!H", kind) + payload


def tagged(frame: bytes, vlan: int, *, kind: int = VLAN) -> bytes:
    """The frame with a VLAN tag."""
    return frame[:12] + struct.pack("!HH", kind, vlan) + frame[12:]


def arp(operation: int, sender_mac: str, sender: str, target_mac: str, target: str) -> bytes:
    """An ARP message (RFC 826)."""
    fixed = struct.pack("!HHBBH", 1, IPV4, 6, 4, operation)
    return fixed + mac_bytes(sender_mac) + ip_address(sender).packed + mac_bytes(target_mac) + ip_address(target).packed


def ipv4(source: str, destination: str, payload: bytes, *, fragment: int = 0) -> bytes:
    """An IPv4 packet with a UDP payload (RFC 791); `fragment` are its flags and its offset."""
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 0, fragment, 64, UDP, 0)
    header += ip_address(source).packed + ip_address(destination).packed
    return header[:10] + struct.pack("!H", _checksum(header)) + header[12:] + payload


def ipv6(source: str, destination: str, protocol: int, payload: bytes, hop_limit: int = 255) -> bytes:
    """An IPv6 packet (RFC 8200)."""
    header = struct.pack("!IHBB", 6 << 28, len(payload), protocol, hop_limit)
    return header + ip_address(source).packed + ip_address(destination).packed + payload


def behind_destination_options(protocol: int, payload: bytes, *, padding: bytes = bytes(4), length: int = 0) -> bytes:
    """The payload behind an IPv6 extension header (RFC 8200, section 4.6): DESTINATION_OPTIONS.

    `length` is the field of that name, in 8 bytes without the first.
    """
    return struct.pack("!BBBB", protocol, length, 1, len(padding)) + padding + payload


def behind_fragment_header(protocol: int, payload: bytes, offset: int) -> bytes:
    """The payload behind a header that says it is a fragment and not the last (RFC 8200, section 4.5): FRAGMENT."""
    return struct.pack("!BBHI", protocol, 0, offset << 3 | 1, 7) + payload


def neighbour_message(kind: int, source: str, destination: str, target: str, mac: str) -> bytes:
    """An ICMPv6 message of neighbour discovery with a link-layer address option (RFC 4861)."""
    flags = 0x20000000 if kind == ADVERTISEMENT else 0
    option = struct.pack("!BB", 2 if kind == ADVERTISEMENT else 1, 1) + mac_bytes(mac)
    body = struct.pack("!BBHI", kind, 0, 0, flags) + ip_address(target).packed + option
    pseudo = ip_address(source).packed + ip_address(destination).packed + struct.pack("!II", len(body), ICMPV6)
    return body[:2] + struct.pack("!H", _checksum(pseudo + body)) + body[4:]


def udp(payload: bytes, *, source: int = 4000, destination: int = 4000) -> bytes:
    """A UDP datagram without a checksum."""
    return struct.pack("!HHHH", source, destination, 8 + len(payload), 0) + payload


def with_udp_checksum(source: str, destination: str, datagram: bytes) -> bytes:
    """The datagram, which has none, with its checksum in an IPv6 packet (RFC 8200, section 8.1)."""
    pseudo = ip_address(source).packed + ip_address(destination).packed + struct.pack("!II", len(datagram), UDP)
    return datagram[:6] + struct.pack("!H", _checksum(pseudo + datagram)) + datagram[8:]


def icmp(kind: int, code: int, body: bytes) -> bytes:
    """An ICMP message (RFC 792); `body` begins with the four bytes behind the checksum."""
    message = struct.pack("!BBH", kind, code, 0) + body
    return message[:2] + struct.pack("!H", _checksum(message)) + message[4:]


class PacketSocket:
    """Sends frames on a link of a namespace, and receives what comes in there."""

    def __init__(self, namespace: Netns, link: str) -> None:
        with namespace.inside():
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS))
            self._socket.bind((link, 0))

    def received(self) -> list[bytes]:
        """Frames that came in so far."""
        frames = []
        while select.select([self._socket], [], [], 0)[0]:
            frame, (_, _, kind, *_) = self._socket.recvfrom(65536)
            if kind != socket.PACKET_OUTGOING:
                frames.append(frame)
        return frames

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()

    def send(self, frame: bytes) -> None:
        """Sends a frame."""
        self._socket.send(frame)

    def received_until(self, last: bytes, *, timeout: float = 10) -> list[bytes]:
        """Frames that came in, up to the one that contains `last`; fails after `timeout` seconds."""
        frames = []
        deadline = time.monotonic() + timeout
        while select.select([self._socket], [], [], max(0.0, deadline - time.monotonic()))[0]:
            frame, (_, _, kind, *_) = self._socket.recvfrom(65536)
            if kind == socket.PACKET_OUTGOING:
                continue
            frames.append(frame)
            if last in frame:
                return frames
        raise AssertionError(f"no frame with {last!r} within {timeout} s, only {frames}")


def _checksum(data: bytes) -> int:
    padded = data + b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
