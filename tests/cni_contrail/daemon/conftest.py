"""A daemon on a node, called by the shim or by a client of the tests."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon_client import DaemonClient, DaemonResponse
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.plugin_callers import ShimAndDaemon

Ask = Callable[..., DaemonClient]
"""Sends a call: `ask("ADD", pod, **config)`; the test continues the protocol."""


@pytest.fixture
def plugin(node: Netns, tmp_path: Path, agent_socket: str) -> Iterator[Plugin]:
    """The plugin, called through the daemon only."""
    plugin = Plugin(node, tmp_path, agent_socket, ShimAndDaemon(node, tmp_path / "cni.json"))
    yield plugin
    plugin.caller.close()


@pytest.fixture
def caller(plugin: Plugin) -> ShimAndDaemon:
    """The shim and the daemon."""
    assert isinstance(plugin.caller, ShimAndDaemon)
    return plugin.caller


@pytest.fixture
def ask(plugin: Plugin, caller: ShimAndDaemon) -> Ask:
    def ask(command: str, pod: PodSandbox, ifname: str = "eth0", **config: Any) -> DaemonClient:
        caller.daemon()
        client = DaemonClient(caller.socket_path)
        client.ask(plugin.environment(command, pod, ifname), json.dumps(plugin.config(**config)).encode())
        client.acknowledged()
        return client

    return ask


def error(answered: DaemonResponse, code: int) -> str:
    """Returns the message of an error with that code."""
    document = json.loads(answered.output)
    assert (answered.status, document["code"]) == (1, code), answered
    return str(document["msg"])
