"""Kubernetes API servers for the contract suite in `tests/contrail_config/kube/api_contract`.

The real one is included if the environment names its binaries, as `scripts/e2e` does. To add a server, add an entry to
API_SERVERS: clients need full rights, and other objects may exist outside the namespaces and kinds of the suite.
"""

import contextlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.configuration.load import load_client_config
from tests.support.fake_apiserver.server import serve_fake_apiserver
from tests.support.real_apiserver.server import BINARIES
from tests.support.real_apiserver.shared import shared_apiserver

ServeApi = Callable[[], AbstractAsyncContextManager[ClientConfig]]
"""Yields the configuration of a client of a server that runs until the context is left."""


@contextlib.asynccontextmanager
async def serve_fake() -> AsyncIterator[ClientConfig]:
    async with serve_fake_apiserver() as server:
        yield ClientConfig(server.url)


@contextlib.asynccontextmanager
async def serve_real() -> AsyncIterator[ClientConfig]:
    yield await load_client_config(kubeconfig=str(shared_apiserver().kubeconfig()))


API_SERVERS: dict[str, ServeApi] = {"fake": serve_fake}
if BINARIES in os.environ:
    API_SERVERS["real"] = serve_real
