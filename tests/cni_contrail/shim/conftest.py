"""The shim as installed and with sanitizers, and a daemon scripted by the test."""

import tempfile
from collections.abc import Iterator

import pytest

from tests.support.shim import ScriptedDaemon, Shim, build_shim


@pytest.fixture
def socket_path() -> Iterator[str]:
    """A path short enough for a Unix socket, whatever the test's name."""
    with tempfile.TemporaryDirectory(prefix="ct-") as folder:
        yield f"{folder}/cni.sock"


@pytest.fixture(params=[(), ("--sanitize",)], ids=["installed", "sanitized"])
def shim(request: pytest.FixtureRequest, socket_path: str) -> Shim:
    """Both binaries, one after the other."""
    return Shim(build_shim(*request.param), socket_path)


@pytest.fixture
def installed(socket_path: str) -> Shim:
    """The binary that is installed on nodes."""
    return Shim(build_shim(), socket_path)


@pytest.fixture
def sanitized(socket_path: str) -> Shim:
    """The binary with sanitizers and a shorter timeout: it waits two seconds for a response."""
    return Shim(build_shim("--sanitize"), socket_path)


@pytest.fixture
def daemon(socket_path: str) -> Iterator[ScriptedDaemon]:
    with ScriptedDaemon(socket_path) as listening:
        yield listening
