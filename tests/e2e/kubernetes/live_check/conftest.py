"""An API server with two nodes whose kubelets are played, and the command that checks it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contrail_config.kube.client import connect
from contrail_config.kube.configuration.load import load_client_config
from contrail_config.kubernetes.crds import ensure_crds
from tests.e2e.kubernetes.live_check.live_check import NODES, LiveCheck
from tests.support.real_apiserver.server import ApiServer
from tests.support.temporary_pods import NamespaceController, PlayedKubelet, playing


@pytest.fixture(scope="module")
def prepared(api_server: ApiServer) -> ApiServer:
    """A server with our definitions and the nodes."""

    async def define() -> None:
        async with connect(await load_client_config(kubeconfig=str(api_server.kubeconfig()))) as client:
            await ensure_crds(client)

    asyncio.run(define())
    for node in NODES:
        api_server.ask("POST", "/api/v1/nodes", {"metadata": {"name": node}})
    return api_server


@pytest.fixture
def live(prepared: ApiServer, tmp_path: Path) -> Iterator[LiveCheck]:
    check = LiveCheck(prepared, tmp_path)

    def end(_: Any) -> None:
        """Pods have nothing here that would have to end."""

    with playing(PlayedKubelet(prepared, "", check.start_pod, end), NamespaceController(prepared)):
        yield check
