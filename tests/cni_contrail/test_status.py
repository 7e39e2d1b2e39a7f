"""STATUS succeeds if an ADD could be served, else fails with 50 or 51 and the reason; it changes nothing.

A runtime takes each failure for a node that is not ready, so it waits for an agent that is being replaced.
"""

import contextlib
import json
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.cni_contrail.conftest import SMALL_DISK
from tests.support.plugin import Plugin
from tests.support.scripted_agents import Reply, ScriptedAgent


def not_ready(*reasons: str) -> Reply:
    """A response to /readyz as from our agent."""
    return Reply(503, {"ready": False, "reasons": list(reasons)})


def test_status_succeeds_with_a_ready_agent(agent: ScriptedAgent, plugin: Plugin) -> None:
    agent.before(lambda seen: Reply(200, {"ready": True, "reasons": []}) if seen.path == "/readyz" else None)
    assert plugin.status().succeeded().stdout == ""
    assert [(seen.method, seen.path) for seen in agent.requests] == [("GET", "/readyz")]


def test_status_succeeds_with_a_vrouter_agent_without_readyz(vrouter_agent: ScriptedAgent, plugin: Plugin) -> None:
    plugin.status().succeeded()


def test_an_unreachable_agent_is_50(plugin: Plugin, agent_socket: str) -> None:
    message = plugin.status().failed(50)
    assert message == f"agent unreachable at unix:{agent_socket}: No such file or directory"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (not_ready("the machines are not listed yet"), "the machines are not listed yet"),
        (not_ready("a", "b"), "a; b"),
        (not_ready(), "503"),
        (Reply(503, {"error": "starting"}), "503 starting"),
        (Reply(500, raw=b"<html>"), "500 <html>"),
        (Reply(503, raw=b'{"reasons": 5}'), "503"),
    ],
)
def test_an_agent_that_is_not_ready_is_50_with_its_reasons(
    agent: ScriptedAgent, plugin: Plugin, reply: Reply, words: str
) -> None:
    agent.before(lambda seen: reply)
    message = plugin.status().failed(50)
    assert agent.socket_path in message
    assert words in message


def test_a_kernel_without_support_for_index_0_is_50(agent: ScriptedAgent, plugin: Plugin) -> None:
    problem = "datapath: index 0: kernel module nf_tables is missing: open a netlink socket: Protocol not supported"
    agent.before(lambda seen: not_ready("datapath: VNI 5: no bridge", problem))
    message = plugin.status().failed(50)
    assert message.endswith(f"not ready: {problem}")


def test_a_problem_of_a_network_in_the_datapath_is_none_of_the_node(agent: ScriptedAgent, plugin: Plugin) -> None:
    problem = "datapath: VNI 5: its ports are not connected"
    agent.before(lambda seen: not_ready(problem))
    plugin.status().succeeded()
    agent.clear_behaviours()
    agent.before(lambda seen: not_ready(problem, "the machines are not listed yet"))
    assert plugin.status().failed(50).endswith("not ready: the machines are not listed yet")


def test_an_agent_that_has_not_restored_its_ports_is_51(agent: ScriptedAgent, plugin: Plugin) -> None:
    """Attached pods may have no connectivity until it does."""
    agent.before(lambda seen: not_ready("the ports are not reloaded yet", "the machines are not listed yet"))
    assert "the ports are not reloaded yet" in plugin.status().failed(51)


def test_a_server_without_http_is_50(plugin: Plugin, agent_socket: str) -> None:
    def greet(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # shut down
            while True:
                client, _ = listener.accept()
                with client:
                    client.recv(65536)
                    client.sendall(b"220 mail.example.org\r\n\r\n")

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(agent_socket)
        listener.listen()
        thread = threading.Thread(target=greet, args=(listener,))
        thread.start()
        assert "the response is not HTTP" in plugin.status().failed(50)
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def test_a_hanging_agent_is_50_after_some_seconds(agent: ScriptedAgent, plugin: Plugin) -> None:
    """Besides the timeout, the call takes the start of an interpreter."""
    agent.stall("GET")
    begin = time.monotonic()
    assert "timed out waiting for a response" in plugin.status().failed(50)
    assert time.monotonic() - begin < 4 + 0.5 + 0.25 + 1  # patience, pause, request; the machine may be busy


def test_status_waits_for_an_agent_that_becomes_ready(agent: ScriptedAgent, plugin: Plugin) -> None:
    replies = iter([not_ready("the machines are not listed yet")] * 3)
    agent.before(lambda seen: next(replies, None))
    plugin.status().succeeded()
    assert len(agent.requests) == 4


def test_status_waits_for_an_agent_that_is_being_replaced(agent: ScriptedAgent, plugin: Plugin) -> None:
    agent.stop()
    starting = threading.Timer(1, agent.start)
    starting.start()
    plugin.status().succeeded()
    starting.join()


def test_status_waits_for_no_kernel_module(agent: ScriptedAgent, plugin: Plugin) -> None:
    """Somebody has to load it."""
    agent.before(lambda seen: not_ready("datapath: index 0: kernel module nf_tables is missing"))
    plugin.status().failed(50)
    assert len(agent.requests) == 1


def test_status_changes_nothing(agent: ScriptedAgent, plugin: Plugin) -> None:
    plugin.status().succeeded()
    agent.before(lambda seen: not_ready("x"))
    plugin.status().failed(50)
    assert not plugin.state_dir.exists()
    assert plugin.files() == []


class TestTheStateDirectory:
    """Without it no ADD can be served: every attachment must be recorded first."""

    @pytest.fixture(autouse=True)
    def on_a_small_disk(self, plugin: Plugin, small_disk: Path) -> None:
        plugin.settings["state-dir"] = str(small_disk / "state")

    def test_a_read_only_directory_is_50(self, agent: ScriptedAgent, plugin: Plugin, small_disk: Path) -> None:
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
        message = plugin.status().failed(50)
        assert f"{small_disk}/state: not writable: {small_disk} is read-only" in message

    def test_a_full_directory_is_50(self, agent: ScriptedAgent, plugin: Plugin, small_disk: Path) -> None:
        plugin.status().succeeded()
        (small_disk / "filler").write_bytes(bytes(SMALL_DISK))
        assert "is full" in plugin.status().failed(50)

    def test_a_file_instead_of_the_directory_is_50(self, agent: ScriptedAgent, plugin: Plugin, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        message = plugin.status(settings={"state-dir": str(tmp_path / "file" / "state")}).failed(50)
        assert f"{tmp_path}/file is not a directory" in message


def test_a_configuration_that_add_rejects_gets_the_same_error(agent: ScriptedAgent, plugin: Plugin) -> None:
    assert "ipam" in plugin.status(ipam={"type": "host-local"}).failed(2)
    assert "unknown key" in plugin.status(settings={"unknown": 5}).failed(7)


def test_status_needs_neither_container_nor_sandbox_nor_arguments(agent: ScriptedAgent, plugin: Plugin) -> None:
    config = json.dumps(plugin.config(version="1.1.0"))
    plugin.call({"CNI_COMMAND": "STATUS", "CNI_PATH": "/opt/cni/bin"}, config).succeeded()
