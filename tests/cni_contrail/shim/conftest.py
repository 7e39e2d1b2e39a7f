"""The shim as it is installed, and as sanitizers watch it; and a daemon that tests play."""

import tempfile
from collections.abc import Iterator

import pytest

from tests.support.shim import PlayedDaemon, Shim, build_shim


@pytest.fixture
def socket_path() -> Iterator[str]:
    """A path short enough for a Unix socket, whatever the test's name."""
    with tempfile.TemporaryDirectory(prefix="ct-") as folder:
        yield f"{folder}/cni.sock"


@pytest.fixture(params=[(), ("--sanitize",)], ids=["installed", "sanitized"])
def shim(request: pytest.FixtureRequest, socket_path: str) -> Shim:
    """Both, one after the other."""
    return Shim(build_shim(*request.param), socket_path)


@pytest.fixture
def installed(socket_path: str) -> Shim:
    """As it is installed on nodes."""
    return Shim(build_shim(), socket_path)


@pytest.fixture
def sanitized(socket_path: str) -> Shim:
    """Watched by sanitizers, and less patient: it waits two seconds for an answer."""
    return Shim(build_shim("--sanitize"), socket_path)


@pytest.fixture
def daemon(socket_path: str) -> Iterator[PlayedDaemon]:
    with PlayedDaemon(socket_path) as listening:
        yield listening
