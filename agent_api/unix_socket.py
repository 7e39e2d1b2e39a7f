"""Unix socket listener for our own plugin, which runs as root on this node.

The socket is bound under a temporary name, gets its mode and is renamed into place. So no client can connect before the
mode is set, and a socket that a killed process left is replaced atomically. A socket on which another process listens
is not replaced.
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
_BACKLOG = 1024  # a booting node starts all its pods at once
_PROBE_TIMEOUT = 1.0  # seconds for a listening process to accept


@contextlib.asynccontextmanager
async def serve_unix(runner: web.AppRunner, path: str) -> AsyncIterator[None]:
    """Serves a runner, already set up, on a socket of mode 0600 until the context is left. Raises ListenError."""
    try:
        listener = await asyncio.to_thread(_listen, path)
    except OSError as error:
        raise ListenError(f"cannot listen on {path}: {error.strerror or error}") from error
    own = await asyncio.to_thread(os.stat, path)  # to leave the socket of a successor alone at the end
    # The listener is bound already; aiohttp's UnixSite would bind the path itself, without mode and replacement.
    await web.SockSite(runner, listener, backlog=_BACKLOG).start()
    try:
        yield
    finally:
        await asyncio.to_thread(_remove, path, own)


def _listen(path: str) -> socket.socket:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    _check_unused(path)
    temporary = f"{path}.new"  # in the same directory, as rename cannot cross file systems
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(temporary)
        os.chmod(temporary, _MODE)
        listener.listen(_BACKLOG)
        os.rename(temporary, path)
    except OSError:
        listener.close()
        raise
    return listener


def _check_unused(path: str) -> None:
    """Raises ListenError if the path exists and is not a socket, or if another process listens on it."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise ListenError(f"cannot listen on {path}: the file exists and is not a socket")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_PROBE_TIMEOUT)
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            return
        except (TimeoutError, BlockingIOError):
            pass  # another process listens, but its backlog is full
    raise ListenError(f"cannot listen on {path}: another process listens on it")


def _remove(path: str, own: os.stat_result) -> None:
    with contextlib.suppress(FileNotFoundError):
        # A successor may have replaced the socket while this process was stopping.
        if os.path.samestat(os.lstat(path), own):
            os.unlink(path)
