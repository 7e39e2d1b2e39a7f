"""One API server shared by all tests of a run that do not disturb each other."""

import atexit
import contextlib
import functools
import tempfile
from pathlib import Path

from tests.support.real_apiserver.server import ApiServer, serve_real_apiserver


@functools.cache
def shared_apiserver() -> ApiServer:
    """Starts the server at the first call; it ends with the test run."""
    with contextlib.ExitStack() as started:
        work = started.enter_context(tempfile.TemporaryDirectory())
        server = started.enter_context(serve_real_apiserver(Path(work)))
        server.forget_history()  # so that an expired resourceVersion exists
        atexit.register(started.pop_all().close)
    return server
