"""`contrailctl check probe`: makes probes from within a temporary pod, without any right but that to open sockets.

Those that expect an answer come first and are repeated for some seconds, as pods start at different times. When the
others are made, the pods have answered, so that silence means something.
"""

import argparse
import asyncio
import functools
import os
import socket
import struct
import sys
from collections.abc import Sequence

import msgspec

from cni_contrail.link.addresses import dump_addresses, packed, parse_address
from cni_contrail.link.errors import LinkError
from cni_contrail.link.exchange import RouteSocket
from contrailctl.check.live.wire import (
    CONCURRENT,
    EXPECTED_SECONDS,
    LONG_SECONDS,
    UNEXPECTED_SECONDS,
    Kind,
    Outcome,
    Probe,
    Result,
)
from contrailctl.errors import UsageError
from contrailctl.output import Output

_PAUSE = 0.3  # seconds between attempts
_LONG = bytes(range(256)) * 32  # several packets of full size, also after segmentation
_MAX_IDENTITY = 256
_MAX_ANSWER = 2048
_ECHO_REQUEST: dict[int, int] = {socket.AF_INET: 8, socket.AF_INET6: 128}
_ECHO_PROTOCOL: dict[int, int] = {socket.AF_INET: socket.IPPROTO_ICMP, socket.AF_INET6: socket.IPPROTO_ICMPV6}
_HEADER = struct.Struct("!BBHHH")  # struct icmphdr: type, code, checksum, identifier, sequence number
_TOKEN_BYTES = 16  # tells requests from each other: the identifier is too short


def probe(_: argparse.Namespace) -> Output:
    """Reads probes from the standard input; the output is their results, in the same order."""
    try:
        probes = msgspec.json.decode(sys.stdin.buffer.read(), type=list[Probe])
    except msgspec.DecodeError as error:
        raise UsageError(f"check probe: {error}") from error
    return Output("", asyncio.run(run_probes(probes)))


async def run_probes(probes: Sequence[Probe]) -> list[Result]:
    """Returns the results in the same order."""
    results: dict[int, Result] = {}
    for expected in (True, False):
        numbers = [number for number, each in enumerate(probes) if each.expected is expected]
        results.update(zip(numbers, await _at_once([probes[number] for number in numbers]), strict=True))
    return [results[number] for number in range(len(probes))]


async def _at_once(probes: Sequence[Probe]) -> list[Result]:
    slots = asyncio.Semaphore(CONCURRENT)

    async def run(each: Probe) -> Result:
        async with slots:
            return await _result(each)

    return await asyncio.gather(*(run(each) for each in probes))


async def _result(each: Probe) -> Result:
    """Repeats a probe that expects an answer until one comes, or the time is over."""
    loop = asyncio.get_running_loop()
    end = loop.time() + (EXPECTED_SECONDS if each.expected else UNEXPECTED_SECONDS)
    while True:
        result = await _attempt(each, end)
        if result.outcome is not Outcome.NOTHING or not each.expected or loop.time() + _PAUSE >= end:
            return result
        await asyncio.sleep(_PAUSE)


async def _attempt(each: Probe, end: float) -> Result:
    try:
        if each.kind is not Kind.ECHO:
            return await _connection(each, end)
        async with asyncio.timeout_at(end):
            return await _echo(each)
    except TimeoutError:
        return Result(Outcome.NOTHING, "timed out")
    except OSError as error:
        return Result(Outcome.NOTHING, _reason(error))
    except LinkError as error:
        return Result(Outcome.ABSENT, str(error))


def _reason(error: OSError) -> str:
    """Returns the text of the error number: asyncio replaces that of a connection by the address."""
    return os.strerror(error.errno).lower() if error.errno else str(error)


def _open(each: Probe, kind: int, protocol: int = 0) -> socket.socket:
    """Opens a socket that sends from the probe's address, by its link."""
    opened = socket.socket(_family(each), kind | socket.SOCK_NONBLOCK, protocol)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, _link_with(each.source))
        opened.bind((each.source, 0))
    except OSError:
        opened.close()
        raise
    return opened


@functools.cache  # of a pod they do not change; a failure is not kept
def _link_with(address: str) -> bytes:
    """Returns the name of the link that has an address. Raises LinkError."""
    _, wanted = packed(address)
    with RouteSocket() as rtnetlink:
        found = next(
            (each for each in map(parse_address, rtnetlink.dump(dump_addresses())) if each.local == wanted), None
        )
    if found is None:
        raise LinkError(f"no link has {address}")
    return socket.if_indextoname(found.ifindex).encode()


def _family(each: Probe) -> int:
    return socket.AF_INET6 if ":" in each.target else socket.AF_INET


async def _connection(each: Probe, end: float) -> Result:
    with _open(each, socket.SOCK_STREAM) as connection:
        async with asyncio.timeout_at(end):
            await asyncio.get_running_loop().sock_connect(connection, (each.target, each.port))
            if each.kind is Kind.CONNECT:
                return Result(Outcome.ANSWERED)
            identity = await _identity(connection)
        if identity != each.identity:
            return Result(Outcome.OTHER, f"another server answers: {identity!r}")
        try:
            async with asyncio.timeout(LONG_SECONDS):
                await _exchange_long_packets(connection)
        except TimeoutError:
            return Result(Outcome.SHORT)
    return Result(Outcome.ANSWERED)


async def _identity(connection: socket.socket) -> str:
    """Returns the first line that the peer sends, cut if it is longer than an identity."""
    line = b""
    while b"\n" not in line and len(line) < _MAX_IDENTITY:
        data = await asyncio.get_running_loop().sock_recv(connection, _MAX_IDENTITY)
        if not data:
            break
        line += data
    return line.partition(b"\n")[0].decode(errors="replace")


async def _exchange_long_packets(connection: socket.socket) -> None:
    """Returns when everything has come back. Raises OSError if the peer closes before."""
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(connection, _LONG)
    left = len(_LONG)
    while left > 0:
        data = await loop.sock_recv(connection, left)
        if not data:
            raise ConnectionResetError("connection closed by peer")
        left -= len(data)


async def _echo(each: Probe) -> Result:
    """Sends echo requests until one is answered; the socket is one that needs no capability."""
    family = _family(each)
    try:
        asking = _open(each, socket.SOCK_DGRAM, _ECHO_PROTOCOL[family])
    except PermissionError:
        return Result(Outcome.NOT_PERMITTED, "net.ipv4.ping_group_range of the pod permits no echo requests")
    token = os.urandom(_TOKEN_BYTES)
    request = _HEADER.pack(_ECHO_REQUEST[family], 0, 0, 0, 1) + token  # the kernel sets identifier and checksum
    with asking:
        while True:
            await asyncio.get_running_loop().sock_sendto(asking, request, (each.target, 0))
            if await _is_answered(asking, token):
                return Result(Outcome.ANSWERED)


async def _is_answered(asking: socket.socket, token: bytes) -> bool:
    """Waits a moment for the answer. Raises OSError if a router reports that there will be none."""
    try:
        async with asyncio.timeout(_PAUSE):
            while True:  # an answer to a former request may be late
                if token in await asyncio.get_running_loop().sock_recv(asking, _MAX_ANSWER):
                    return True
    except TimeoutError:
        return False
