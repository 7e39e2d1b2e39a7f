"""`/healthz`, `/readyz` and `/metrics`."""

import contextlib
import json
import os
import resource
import select
import socket
import struct
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
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


def test_metrics_have_those_of_the_process(get: Get) -> None:
    assert "\nprocess_resident_memory_bytes " in get("/metrics").text


def test_readyz_reports_an_unreachable_agent(get: Get) -> None:
    assert get("/healthz").status == 200
    page = get("/readyz")
    assert page.status == 503
    assert "agent unreachable" in json.loads(page.text)["reasons"][0]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [("{", "cannot be read"), ('{"vif-type": "macvlan"}', "parent-interface: link eth0 not found")],
)
def test_readyz_reports_invalid_settings_and_recovers(
    agent: ScriptedAgent, plugin: Plugin, get: Get, settings: str, reason: str
) -> None:
    get("/healthz")
    plugin.node_file.write_text(settings)
    until(lambda: get("/readyz").status == 503)  # a result is served for a second
    page = get("/readyz")
    assert reason in json.loads(page.text)["reasons"][0]
    assert "contrail_cnid_pending_deletes" in get("/metrics").text
    plugin.node_file.unlink()
    until(lambda: get("/readyz").status == 200)


@contextlib.contextmanager
def slow_clients(plugin: Plugin, number: int) -> Iterator[list[socket.socket]]:
    """Clients with an incomplete request head, which they continue byte by byte."""
    stopped = threading.Event()

    def send_slowly(clients: list[socket.socket]) -> None:
        while not stopped.wait(0.2):
            for each in clients:
                with contextlib.suppress(OSError):  # closed by the daemon
                    each.send(b"x")

    with plugin.node.inside(), contextlib.ExitStack() as connected:
        clients = [connected.enter_context(socket.create_connection(("127.0.0.1", 9099))) for _ in range(number)]
        for each in clients:
            each.sendall(b"GET /healthz HTTP/1.1\r\nx: ")
        thread = threading.Thread(target=send_slowly, args=(clients,))
        thread.start()
        try:
            yield clients
        finally:
            stopped.set()
            thread.join()


def ended(clients: list[socket.socket]) -> int:
    """Number of the clients that the daemon has hung up on."""
    return len(select.select(clients, [], [], 0)[0])


def test_slow_clients_do_not_block_the_health_page(plugin: Plugin, get: Get) -> None:
    get("/healthz")
    with slow_clients(plugin, 16) as clients:
        assert get("/healthz").status == 200
        assert ended(clients) > 0  # the oldest ones


def test_a_request_head_has_one_deadline_for_all_its_bytes(plugin: Plugin, get: Get) -> None:
    get("/healthz")
    with slow_clients(plugin, 4) as clients:
        until(lambda: ended(clients) == 4)
    assert get("/healthz").status == 200


def test_silent_clients_are_limited_per_peer(plugin: Plugin, get: Get) -> None:
    get("/healthz")
    with plugin.node.inside(), contextlib.ExitStack() as connected:
        silent = [connected.enter_context(socket.create_connection(("127.0.0.1", 9099))) for _ in range(20)]
        until(lambda: ended(silent) >= 20 - 8)
        assert silent[0].recv(1) == b""
        assert get("/healthz").status == 200


def test_clients_of_readyz_do_not_block_the_health_page_while_the_agent_is_silent(
    agent: ScriptedAgent, plugin: Plugin, get: Get
) -> None:
    get("/healthz")
    checked = agent.stall("GET", "/readyz")
    with plugin.node.inside(), contextlib.ExitStack() as connected:
        for _ in range(3):
            clients = [connected.enter_context(socket.create_connection(("127.0.0.1", 9099))) for _ in range(40)]
            for each in clients:
                with contextlib.suppress(ConnectionError):  # one of the oldest
                    each.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
            assert get("/healthz").status == 200
        assert checked.wait(10)
    assert len([seen for seen in agent.requests if seen.path == "/readyz"]) < 30  # of 120: one at a time
    assert get("/readyz").status == 503


def test_running_out_of_descriptors_is_logged_once(plugin: Plugin, caller: ShimAndDaemon, get: Get) -> None:
    get("/healthz")
    before = resource.prlimit(caller.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(caller.pid, resource.RLIMIT_NOFILE, (3, before[1]))
    with plugin.node.inside(), socket.create_connection(("127.0.0.1", 9099)):
        until(lambda: b"metrics-listen: cannot accept connections: Too many open files" in caller.daemon().logged())
        tick = cpu_ticks(caller.pid)
        with contextlib.suppress(TimeoutError, socket.timeout), socket.socket() as waiting:
            waiting.settimeout(1)
            waiting.connect(("127.0.0.1", 9099))
            waiting.recv(1)
        assert cpu_ticks(caller.pid) - tick < 50  # of 100 per second: accept is not retried in a busy loop
    resource.prlimit(caller.pid, resource.RLIMIT_NOFILE, before)
    assert get("/healthz").status == 200
    assert caller.daemon().logged().count(b"metrics-listen: cannot accept") == 1


def cpu_ticks(process: int) -> int:
    """Processor time of a process."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(words[11]) + int(words[12])


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
