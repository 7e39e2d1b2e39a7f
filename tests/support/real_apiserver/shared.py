"""One server for all tests of a run that leave nothing in each other's way."""

import atexit
import contextlib
import functools
import tempfile
from pathlib import Path

from tests.support.real_apiserver.server import ApiServer, serve_real_apiserver


@functools.cache
def shared_apiserver() -> ApiServer:
    """Starts it when it is first asked for; it ends with the run."""
    with contextlib.ExitStack() as started:
        work = started.enter_context(tempfile.TemporaryDirectory())
        server = started.enter_context(serve_real_apiserver(Path(work)))
        server.forget_history()  # so that there is a version that is too old
        atexit.register(started.pop_all().close)
    return server
