"""Protocol between shim and daemon over the Unix socket: one request per connection.

PRIVATE: both are released together; the version in each request is for the moment of an upgrade. All numbers are
big-endian.

1. Shim: 20 bytes: magic `cnid`, version u16, reserved u16, netns i32 (0: a descriptor of CNI_NETNS comes with the first
   byte, SCM_RIGHTS; above: opening it failed with this errno; -1: no CNI_NETNS), length of the environment u32, length
   of the input u32. Then `KEY=VALUE` and a zero byte for each `CNI_...` variable, then standard input.
2. Daemon: the byte 1, the acknowledgement, as soon as it has read the whole request, within 2 s, before any work.
   During an ADD it may then ask to pin a namespace of a network on the host, any number of times: 2 u32, length of the
   name u32, the name `contrail-<vni>`; the descriptor comes with the first byte. Shim: 0 u32, or the errno.
3. Daemon: the response: exit status u32, length u32, and the bytes for standard output.
4. Shim: the byte 1, the receipt, when it has written them. If it ends without, its runtime has no response. The daemon
   waits 2 s for the receipt.

Steps 2 and 3 keep their form in every version, so a shim of another version gets an error that says so.

Security: only root may enter the socket's directory, the socket has mode 0600, and the daemon checks the peer's user.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from typing import NamedTuple

from cni_contrail.daemon.errors import ProtocolError
from cni_contrail.errors import Code, PluginError
from cni_contrail.protocol.netconf import LARGEST_CONFIG

VERSION = 2
ACKNOWLEDGEMENT = b"\1"
RECEIPT = b"\1"
LARGEST_ENVIRONMENT = 64 * 1024

_MAGIC = b"cnid"
_OPENING = struct.Struct("!4sH")
_HEADER = struct.Struct("!4sHHiII")
_RESPONSE = struct.Struct("!II")
_PIN = 2  # in place of an exit status
PIN_REPLY = struct.Struct("!I")
_NO_NETNS = -1


class ShimRequest(NamedTuple):
    """A request; `netns_errno` is why CNI_NETNS could not be opened, 0 otherwise."""

    environment: Mapping[str, str]
    input: bytes
    netns_errno: int

    @property
    def command(self) -> str:
        """CNI_COMMAND, or empty."""
        return self.environment.get("CNI_COMMAND", "")

    @property
    def attachment(self) -> tuple[str, str]:
        """Container ID and CNI_IFNAME."""
        return self.environment.get("CNI_CONTAINERID", ""), self.environment.get("CNI_IFNAME", "")


def parse_request(received: bytes | bytearray, *, has_descriptor: bool) -> ShimRequest | None:
    """Returns the request, None as long as it is not whole.

    Raises `ProtocolError` for bytes that are no request, `PluginError` with code 107 for another version of the
    protocol and for sizes that are not permitted; neither is waited for.
    """
    if len(received) < _OPENING.size:
        return None
    _check_opening(received)
    if len(received) < _HEADER.size:
        return None
    _, _, _, netns, environment, data = _HEADER.unpack_from(received)
    _check_header(netns, environment, data, has_descriptor=has_descriptor)
    input_begin = _HEADER.size + environment
    end = input_begin + data
    if len(received) < end:
        return None
    if len(received) > end:
        raise ProtocolError(f"request: {len(received) - end} unexpected bytes after its end")
    variables = _environment(bytes(received[_HEADER.size : input_begin]))
    return ShimRequest(variables, bytes(received[input_begin:]), max(netns, 0))


def encode_response(status: int, output: bytes) -> bytes:
    """Returns the bytes of a response."""
    return _RESPONSE.pack(status, len(output)) + output


def encode_pin(name: str) -> bytes:
    """Returns the bytes that ask to pin a namespace."""
    return _RESPONSE.pack(_PIN, len(name)) + name.encode()


def _check_opening(received: bytes | bytearray) -> None:
    magic, version = _OPENING.unpack_from(received)
    if magic != _MAGIC:
        raise ProtocolError(f"request: starts with {magic!r} instead of {_MAGIC!r}")
    if version != VERSION:
        message = f"protocol mismatch: the shim has version {version}, the daemon version {VERSION}"
        raise PluginError(Code.DAEMON_PROTOCOL, message)


def _check_header(netns: int, environment: int, data: int, *, has_descriptor: bool) -> None:
    if environment > LARGEST_ENVIRONMENT or data > LARGEST_CONFIG:
        raise PluginError(Code.DAEMON_PROTOCOL, f"request: too large: {environment} + {data} bytes")
    if netns < _NO_NETNS or (netns == 0) != has_descriptor:
        descriptor = "a descriptor" if has_descriptor else "no descriptor"
        raise PluginError(Code.DAEMON_PROTOCOL, f"request: netns is {netns} and came with {descriptor}")


def _environment(data: bytes) -> Mapping[str, str]:
    pairs = [each.partition("=") for each in os.fsdecode(data).split("\0") if each]
    return {name: value for name, _, value in reversed(pairs)}  # the first of two counts, as in `os.environ`
