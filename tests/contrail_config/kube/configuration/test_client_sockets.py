"""Cancelled requests leave no open socket, even if the event loop is closed at once."""

import asyncio
import contextlib
import gc
import socket
import threading
import warnings
from collections.abc import Awaitable, Callable, Iterator

from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.configuration.load import load_client_config
from contrail_config.kube.selector import EVERYTHING
from tests.contrail_config.kube.configuration.conftest import WriteKubeconfig
from tests.contrail_config.kube.tls import server_context
from tests.support.config_maps import CONFIG_MAPS
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.recorded_reflector import DEADLINE, eventually


async def watch_for_a_moment(client: KubeClient) -> None:
    page = await anext(client.pages(CONFIG_MAPS))
    async with client.watch(CONFIG_MAPS, EVERYTHING, since=page.resource_version, seconds=60) as events:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(anext(events), 0.1)


def run_in_new_loop(kubeconfig: str, act: Callable[[KubeClient], Awaitable[None]]) -> list[str]:
    """Runs `act` in an event loop that is closed at once; returns the warnings of Python."""

    async def connected() -> None:
        async with connect(await load_client_config(kubeconfig=kubeconfig)) as client:
            await act(client)

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        loop = asyncio.new_event_loop()
        loop.run_until_complete(connected())
        loop.close()
        gc.collect()
    return [str(each.message) for each in warned]


async def test_a_watch_leaves_nothing_open(tls_server: FakeApiServer, write_kubeconfig: WriteKubeconfig) -> None:
    kubeconfig = write_kubeconfig(tls_server.url)

    assert await asyncio.to_thread(run_in_new_loop, kubeconfig, watch_for_a_moment) == []


@contextlib.contextmanager
def serve_without_response(received: threading.Event) -> Iterator[str]:
    """Gives the URL of a server that reads one request, and sends neither a response nor a close_notify."""
    over = threading.Event()

    def read() -> None:
        connection, _ = listener.accept()
        with server_context().wrap_socket(connection, server_side=True) as secured:
            secured.recv(65_536)
            received.set()
            over.wait(DEADLINE)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=read)
        server.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        over.set()
        server.join()


def test_a_request_without_a_response_leaves_nothing_open(write_kubeconfig: WriteKubeconfig) -> None:
    received = threading.Event()

    async def cancel_a_request(client: KubeClient) -> None:
        request = asyncio.create_task(client.list_all(CONFIG_MAPS))
        await eventually(received.is_set)
        request.cancel()
        await asyncio.wait([request])

    with serve_without_response(received) as url:
        assert run_in_new_loop(write_kubeconfig(url), cancel_a_request) == []
