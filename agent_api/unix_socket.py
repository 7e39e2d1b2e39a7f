"""Listens on a Unix socket: for our own plugin, which runs as root on this node.

The socket is bound beside its place, given its mode and renamed into it, so nobody can connect while its mode is still
another one, and a socket that a kill left behind is replaced in one step. One that is listened on belongs to another
process and is left alone.
"""

import asyncio
import contextlib
import os
import socket
import stat
from collections.abc import AsyncIterator

from aiohttp import web

from contrail_service.errors import ListenError

_MODE = 0o600
_BACKLOG = 1024  # a node that boots starts its pods all at once
_PROBE = 1.0  # seconds in which a process that listens takes a connection


@contextlib.asynccontextmanager
async def serve_unix(runner: web.AppRunner, path: str) -> AsyncIterator[None]:
    """Serves a set-up application at the path, mode 0600, until the context is left. Raises ListenError."""
    try:
        listener = await asyncio.to_thread(_listen, path)
    except OSError as error:
        raise ListenError(f"cannot listen on {path}: {error.strerror or error}") from error
    own = await asyncio.to_thread(os.stat, path)
    await web.SockSite(runner, listener, backlog=_BACKLOG).start()
    try:
        yield
    finally:
        await asyncio.to_thread(_remove, path, own)


def _listen(path: str) -> socket.socket:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    _check_free(path)
    beside = f"{path}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(beside)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(beside)
        os.chmod(beside, _MODE)
        listener.listen(_BACKLOG)
        os.rename(beside, path)
    except OSError:
        listener.close()
        raise
    return listener


def _check_free(path: str) -> None:
    """Raises ListenError if something is there that is no socket, or one that is listened on."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise ListenError(f"cannot listen on {path}: it is there and no socket")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_PROBE)
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            return
        except (TimeoutError, BlockingIOError):
            pass  # somebody listens, but is busy
    raise ListenError(f"cannot listen on {path}: another process does")


def _remove(path: str, own: os.stat_result) -> None:
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.lstat(path), own):
            os.unlink(path)
