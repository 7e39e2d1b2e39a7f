"""`/healthz`, `/readyz` and `/metrics`."""

import contextlib
import json
import os
import select
import socket
import struct
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.cni_contrail.conftest import Attach, until
from tests.support.plugin import Plugin, PodSandbox
from tests.support.plugin_callers import ShimAndDaemon
from tests.support.scripted_agents import ScriptedAgent, ServePod

Get = Callable[[str], "Page"]


class Page(NamedTuple):
    status: int
    text: str


@pytest.fixture
def get(plugin: Plugin, caller: ShimAndDaemon) -> Get:
    caller.configuration |= {"metrics-listen": "127.0.0.1:9099", **plugin.settings}

    def get(path: str) -> Page:
        caller.daemon()
        with plugin.node.inside():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:9099{path}", timeout=10) as answer:
                    return Page(answer.status, answer.read().decode())
            except urllib.error.HTTPError as error:
                with error:
                    return Page(error.code, error.read().decode())

    return get


def sample(page: Page, name: str) -> float:
    lines = [line.split() for line in page.text.splitlines() if not line.startswith("#")]
    return next((float(value) for key, value in lines if key == name), 0.0)


def test_the_daemon_is_healthy_and_ready_while_the_agent_is(agent: ScriptedAgent, get: Get) -> None:
    assert json.loads(get("/healthz").text)["healthy"]
    assert get("/readyz") == (200, '{"ready": true, "reasons": []}')


def test_readyz_reports_an_unreachable_agent(get: Get) -> None:
    assert get("/healthz").status == 200
    page = get("/readyz")
    assert page.status == 503
    assert "agent unreachable" in json.loads(page.text)["reasons"][0]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [("{", "cannot be read"), ('{"vif-type": "macvlan"}', "not supported")],
)
def test_readyz_reports_invalid_settings_and_recovers(
    agent: ScriptedAgent, plugin: Plugin, get: Get, settings: str, reason: str
) -> None:
    get("/healthz")
    plugin.node_file.write_text(settings)
    page = get("/readyz")
    assert page.status == 503
    assert reason in json.loads(page.text)["reasons"][0]
    assert "contrail_cnid_pending_deletes" in get("/metrics").text
    plugin.node_file.unlink()
    assert get("/readyz").status == 200


def test_silent_clients_are_limited(plugin: Plugin, get: Get) -> None:
    """Surplus connections are closed, and pages are served again when the first ones end."""
    get("/healthz")
    with plugin.node.inside(), contextlib.ExitStack() as connected:
        silent = [connected.enter_context(socket.create_connection(("127.0.0.1", 9099))) for _ in range(20)]
        until(lambda: len(select.select(silent, [], [], 0)[0]) == 20 - 16)
        assert silent[-1].recv(1) == b""
    until(lambda: is_served(get))


def is_served(get: Get) -> bool:
    try:
        return get("/healthz").status == 200
    except OSError:  # it is still one too many
        return False


def test_a_client_that_hangs_up_is_not_logged(plugin: Plugin, caller: ShimAndDaemon, get: Get) -> None:
    get("/healthz")
    with plugin.node.inside(), socket.create_connection(("127.0.0.1", 9099)) as client:
        client.sendall(b"GET /metrics HTTP/1.0\r\n")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing is a reset
    get("/healthz")
    assert b"Traceback" not in caller.daemon().logged()


def test_unknown_pages_are_not_found(get: Get) -> None:
    assert get("/x").status == 404


def test_durations_are_counted_by_command_and_phase(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, get: Get
) -> None:
    serve_pod(agent, 2)
    plugin.add(pod).succeeded()
    plugin.delete(pod).succeeded()
    page = get("/metrics")
    for command, phases in {"ADD": ("list", "make", "plug", "whole"), "DEL": ("remove", "tell", "whole")}.items():
        for phase in phases:
            assert sample(page, f'contrail_cnid_seconds_count{{command="{command}",phase="{phase}"}}') == 1, phase
    assert 'le="0.001"' in page.text


def test_errors_are_counted_by_code(agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, get: Get) -> None:
    get("/healthz")
    plugin.add(pod, ipam={"type": "x"}).failed(2)
    assert sample(get("/metrics"), 'contrail_cnid_errors_total{code="2",command="ADD"}') == 1


def test_waiting_adds_are_counted(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, get: Get
) -> None:
    get("/healthz")
    came = agent.stall("GET", "/vm-cfg")
    adding = plugin.start_with(plugin.environment("ADD", pod), json.dumps(plugin.config()))
    assert came.wait(10)
    until(lambda: sample(get("/metrics"), 'contrail_cnid_running{phase="list"}') == 1)
    adding.kill()
    adding.communicate(timeout=10)
    until(lambda: sample(get("/metrics"), 'contrail_cnid_running{phase="list"}') == 0)


def test_pending_notifications_are_counted_and_resent(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, get: Get
) -> None:
    serve_pod(agent, 2)
    get("/healthz")
    plugin.add(pod).succeeded()
    agent.stop()
    plugin.delete(pod).succeeded()
    assert sample(get("/metrics"), "contrail_cnid_pending_deletes") == 1
    agent.start()
    until(lambda: agent.ports == {})
    until(lambda: sample(get("/metrics"), "contrail_cnid_pending_deletes") == 0)


def test_orphaned_attachments_are_counted_when_they_are_swept(
    agent: ScriptedAgent, plugin: Plugin, attach: Attach, get: Get, caller: ShimAndDaemon
) -> None:
    get("/healthz")
    pods = [attach(agent, f"pod-{number}", interfaces=2) for number in range(2)]
    caller.stop()
    for pod in pods:
        subprocess.run(["ip", "netns", "del", os.path.basename(pod.netns)], check=True)
    until(lambda: plugin.node.links() == [])
    until(lambda: sample(get("/metrics"), "contrail_cnid_freed_total") == 2)
