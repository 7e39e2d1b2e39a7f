"""Contrail API servers for the contract suite in `tests/contrail_config/vnc/api_contract`.

A real one is included if CONTRAIL_API_URL names it; it needs `aaa_mode = no-auth`. The suite creates projects with
unique names there, and deletes what it created.
"""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from tests.support.contrail_api.server import serve_contrail_api

URL = "CONTRAIL_API_URL"

ServeContrail = Callable[[], AbstractAsyncContextManager[str]]
"""Yields the URL of a server that runs until the context is left."""


@asynccontextmanager
async def serve_double() -> AsyncIterator[str]:
    async with serve_contrail_api() as server:
        yield server.url


@asynccontextmanager
async def serve_named() -> AsyncIterator[str]:
    yield os.environ[URL].rstrip("/")


CONTRAIL_APIS: dict[str, ServeContrail] = {"double": serve_double}
if URL in os.environ:
    CONTRAIL_APIS["real"] = serve_named
