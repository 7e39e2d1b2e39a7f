"""Agent failures: down, slow, or malformed responses; which are retried, how long, and the error."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.support.netns import Netns
from tests.support.plugin import LONG_POLL, Plugin, PodSandbox
from tests.support.scripted_agents import ReceivedRequest, Reply, ScriptedAgent, ServePod, make_vmis


def nothing_was_made(plugin: Plugin, sandbox: Netns) -> bool:
    return (plugin.node.links(), sandbox.links(), plugin.files()) == ([], [], [])


class TestDown:
    def test_no_agent_is_an_error_that_names_address_and_reason(
        self, plugin: Plugin, pod: PodSandbox, sandbox: Netns, agent_socket: str
    ) -> None:
        message = plugin.add(pod).failed(11)
        assert message == f"agent unreachable at unix:{agent_socket}: No such file or directory"
        assert nothing_was_made(plugin, sandbox)

    @pytest.mark.parametrize(("host", "url"), [("127.0.0.1", "http://127.0.0.1:1"), ("::1", "http://[::1]:1")])
    def test_no_agent_over_tcp_is_an_error_that_names_the_address(
        self, plugin: Plugin, pod: PodSandbox, host: str, url: str
    ) -> None:
        settings = {"agent-socket": "", "vrouter-ip": host, "vrouter-port": 1}
        assert plugin.add(pod, settings=settings).failed(11) == f"agent unreachable at {url}: Connection refused"

    def test_timeout_times_retries_bounds_the_wait(self, plugin: Plugin, pod: PodSandbox) -> None:
        for timeout, retries in ((0.4, 1), (0.05, 8)):
            begin = time.monotonic()
            plugin.add(pod, settings={"poll-timeout": timeout, "poll-retries": retries}).failed(11)
            assert timeout * retries <= time.monotonic() - begin < timeout * retries + 2

    def test_an_agent_that_starts_during_the_call_is_used(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        serve_pod(agent, 2)
        agent.stop()
        threading.Timer(0.3, agent.start).start()
        plugin.add(pod, settings={"poll-retries": 50}).succeeded()

    def test_an_agent_that_is_not_ready_is_retried(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        serve_pod(agent)
        agent.before(lambda seen: Reply(503, {"error": "{ starting }"}) if len(agent.requests) < 4 else None)
        plugin.add(pod, settings=LONG_POLL).succeeded()
        assert len(agent.received("GET")) == 4

    def test_a_plug_that_fails_is_retried_when_the_agent_is_back(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(agent, 2)
        agent.before(lambda seen: Reply(503) if seen.method == "POST" and len(agent.received("POST")) < 3 else None)
        plugin.add(pod, settings=LONG_POLL).succeeded()
        assert set(agent.owners()) == {vmi.uuid for vmi in vmis}


class TestClosingDuringTheResponse:
    """A response that breaks off is retried."""

    @pytest.fixture
    def broken(self, agent_socket: str) -> Iterator[list[int]]:
        """An agent that closes after each prefix of a good response in turn; the list counts its requests."""
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"
        asked: list[int] = []
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(agent_socket)
            listener.listen()

            def serve() -> None:
                with contextlib.suppress(OSError):  # the test is over
                    while True:
                        client, _ = listener.accept()
                        with client:
                            client.recv(65536)
                            client.sendall(answer[: 8 * len(asked) % len(answer)])
                            asked.append(1)

            thread = threading.Thread(target=serve)
            thread.start()
            yield asked
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)

    def test_add_retries_and_leaves_nothing(
        self, broken: list[int], plugin: Plugin, pod: PodSandbox, sandbox: Netns
    ) -> None:
        message = plugin.add(pod, settings={"poll-timeout": 0.05, "poll-retries": 10}).failed(11)
        assert "closed before the end of the response" in message
        assert len(broken) > 3
        assert nothing_was_made(plugin, sandbox)

    def test_a_pod_is_attached_once_a_response_is_complete(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        """The list and the response to the plug are lost twice each; the ports plugged twice exist once."""
        vmis = serve_pod(agent, 2)
        lost: list[ReceivedRequest] = []

        def lose(seen: ReceivedRequest) -> Reply | None:
            agent.default_reply(seen)
            if len([each for each in lost if each.method == seen.method]) == 2:
                return None
            lost.append(seen)
            return Reply(200, truncated=True)

        agent.before(lose)
        plugin.add(pod, settings=LONG_POLL).succeeded()
        assert agent.owners() == {vmi.uuid: pod.container for vmi in vmis}
        assert len(lost) == 4

    def test_del_keeps_the_notification_that_it_could_not_send(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        serve_pod(agent, 2)
        plugin.add(pod).succeeded()
        agent.before(lambda seen: Reply(200, truncated=True) if seen.method == "DELETE" else None)
        plugin.delete(pod).succeeded()
        assert plugin.node.links() == []
        [kept] = plugin.files()
        assert "/.pending/" in kept


class TestMissingList:
    def test_the_pod_is_named(self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns) -> None:
        missing = f"agent at unix:{agent.socket_path} has no interfaces for pod demo/web-0 (k8s__demo__web-0)"
        assert plugin.add(pod).failed(11) == f"{missing} with uid {pod.uid}"
        assert plugin.add(replace(pod, uid="")).failed(11) == missing
        assert nothing_was_made(plugin, sandbox)

    def test_the_uid_is_named_if_the_agent_has_another_pod_of_that_name(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        serve_pod(agent)
        message = plugin.add(replace(pod, uid="another")).failed(11)
        assert message.endswith("has no interfaces for pod demo/web-0 (k8s__demo__web-0) with uid another")

    @pytest.mark.parametrize(
        ("document", "reason"),
        [
            ({"reason": "NetworkNotFound", "message": "no network blue"}, ": NetworkNotFound: no network blue"),
            ({"reason": "AnnotationInvalid", "message": "x" * 4000}, ": AnnotationInvalid: " + "x" * 178 + "..."),
            ({"reason": "NetworkNotFound"}, ""),
            (["reason", "message"], ""),
            ("reason", ""),
        ],
    )
    def test_the_reason_is_named_if_the_agent_knows_it(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, document: Any, reason: str
    ) -> None:
        agent.before(lambda seen: Reply(404, document))
        assert plugin.add(pod).failed(11).partition(f"with uid {pod.uid}")[2] == reason

    def test_a_list_that_appears_while_the_agent_holds_its_answer_is_used_at_once(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox
    ) -> None:
        """With one request: no polling."""
        vmis = make_vmis(2, uid=pod.uid)
        agent.before(lambda seen: threading.Timer(0.2, agent.serve, (pod.vm_name, vmis)).start())
        begin = time.monotonic()
        plugin.add(pod, settings={"poll-timeout": 3, "poll-retries": 20}).succeeded()
        assert time.monotonic() - begin < 3
        assert len(agent.received("GET")) == 1

    @pytest.mark.parametrize("times", [1, 4])
    def test_a_list_that_appears_between_two_polls_is_used(
        self,
        vrouter_agent: ScriptedAgent,
        plugin: Plugin,
        pod: PodSandbox,
        sandbox: Netns,
        serve_pod: ServePod,
        times: int,
    ) -> None:
        """The Contrail vrouter agent does not hold its answer; the pod's objects may arrive later."""
        serve_pod(vrouter_agent, 2)
        missing = Reply(404, {"error": "{ Not Found }"})
        vrouter_agent.before(lambda seen: missing if len(vrouter_agent.received("GET", "/vm-cfg")) <= times else None)
        plugin.add(pod, settings=LONG_POLL).succeeded()
        assert sandbox.links() == ["eth0", "eth1"]
        assert len(vrouter_agent.received("GET", "/vm-cfg")) == times + 1

    def test_partial_lists_are_retried_until_the_list_is_complete(
        self, vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(vrouter_agent, 3)
        parts = [vmis[:1], vmis[1:2], vmis[:2], vmis[1:], vmis]

        def grow(seen: ReceivedRequest) -> None:
            if seen.path.startswith("/vm-cfg") and parts:
                vrouter_agent.serve(pod.vm_name, parts.pop(0))

        vrouter_agent.before(grow)
        plugin.add(pod, settings=LONG_POLL).succeeded()
        assert sandbox.links() == ["eth0", "eth1", "eth2"]

    def test_the_list_of_a_predecessor_is_never_used(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox
    ) -> None:
        agent.serve(pod.vm_name, make_vmis(3))
        assert "has no interfaces" in plugin.add(pod).failed(11)

    def test_the_missing_indexes_of_a_list_are_named(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        vmis = serve_pod(agent, 4)
        agent.serve(pod.vm_name, [vmis[0], vmis[2]])
        assert "of 4 interfaces, index 1, 3 is missing" in plugin.add(pod).failed(11)

    def test_only_some_of_very_many_missing_indexes_are_named(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        [vmi] = serve_pod(agent)
        agent.serve(pod.vm_name, [vmi.annotated(index="0/999999")])
        assert len(plugin.add(pod).failed(11)) < 300


class TestMalformedResponses:
    """A malformed response would be repeated, so the error is immediate."""

    @pytest.mark.parametrize(
        ("raw", "words"),
        [
            (b"", "not JSON"),
            (b"<html>", "not JSON"),
            (b"{}", "not a list"),
            (b'"x"', "not a list"),
            (b"[5]", "item 0 must be an object"),
            (b"[{}]", "vm-uuid must be a uuid"),
            (b"\xff\xfe", "not JSON"),
        ],
    )
    def test_a_malformed_success_is_an_error(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, raw: bytes, words: str
    ) -> None:
        agent.before(lambda seen: Reply(200, raw=raw))
        begin = time.monotonic()
        assert words in plugin.add(pod, settings={"poll-retries": 100}).failed(100)
        assert time.monotonic() - begin < 5
        assert nothing_was_made(plugin, sandbox)

    @pytest.mark.parametrize(
        ("change", "key"),
        [
            ({"id": "../../etc/passwd"}, "id"),
            ({"id": "5C1E7A52-9D0B-4F5E-8A43-0D6F3C1B7E10"}, "id"),
            ({"id": None}, "id"),
            ({"vm-uuid": 5}, "vm-uuid"),
            ({"vm-uuid": "5c1e7a52-9d0b-4f5e-8a43-0d6f3c1b7e10"}, "vm-uuid"),
            ({"vn-id": "x"}, "vn-id"),
            ({"mac-address": "02:00:00:00:00:0g"}, "mac-address"),
            ({"mac-address": 5}, "mac-address"),
            ({"mtu": "1500"}, "mtu"),
            ({"mtu": 0}, "mtu"),
            ({"mtu": True}, "mtu"),
            ({"ip-address": "fd00::1"}, "ip-address"),
            ({"ip-address": "10.0.0"}, "ip-address"),
            ({"ip-address": 5}, "ip-address"),
            ({"plen": "24"}, "plen"),
            ({"v6-ip-address": "fd00::1", "v6-plen": 129}, "v6-plen"),
            ({"gateway": "nowhere"}, "gateway"),
            ({"dns-server": "nowhere"}, "dns-server"),
            ({"routes": {}}, "routes"),
            ({"routes": ["10.0.0.0/8"]}, "routes"),
            ({"routes": [{"dst": "10.0.0.0"}]}, "routes"),
            ({"routes": [{"dst": "10.0.0.0/33"}]}, "routes"),
            ({"routes": [{"dst": "10.0.0.0/8", "gw": "fd00::1"}]}, "routes"),
            ({"annotations": "x"}, "annotations"),
            ({"annotations": ["index:1/2"]}, "annotations"),
            ({"annotations": ["{index}"]}, "annotations"),
            ({"annotations": [5]}, "annotations"),
            ({"annotations": ["{index:2/2}"]}, "annotations"),
            ({"annotations": ["{index:x}"]}, "annotations"),
            ({"annotations": ["{index:-1/2}"]}, "annotations"),
            ({"annotations": ["{index:1/2}", "{default-gw:maybe}"]}, "annotations"),
        ],
        ids=str,
    )
    def test_a_malformed_item_is_named_with_its_key(
        self,
        agent: ScriptedAgent,
        plugin: Plugin,
        pod: PodSandbox,
        serve_pod: ServePod,
        change: dict[str, Any],
        key: str,
    ) -> None:
        serve_pod(agent, 2)

        def answer(seen: ReceivedRequest) -> Reply:
            reply = agent.default_reply(seen)
            reply.document[1].update(change)
            return reply

        agent.before(answer)
        message = plugin.add(pod).failed(100)
        assert message.startswith("agent's item 1")
        assert f": {key} must be " in message

    def test_an_annotation_may_contain_colons(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod
    ) -> None:
        serve_pod(agent, change=lambda vmi: vmi.annotated(note="a:b:{c}"))
        plugin.add(pod).succeeded()

    @pytest.mark.parametrize("status", [400, 403, 500])
    def test_a_rejected_request_fails_at_once(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, status: int
    ) -> None:
        agent.reject("GET", status=status, text="wait: is no number")
        message = plugin.add(pod, settings={"poll-retries": 100}).failed(101)
        assert (
            message
            == f"agent at unix:{agent.socket_path} rejects GET /vm-cfg/k8s__demo__web-0: {status} wait: is no number"
        )


class TestHtml:
    """A proxy, a captive portal, another service on the port."""

    PAGE = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head></html>"

    @pytest.mark.parametrize(("status", "code"), [(200, 100), (302, 101), (403, 101), (502, 101), (503, 11)])
    def test_it_is_quoted_and_nothing_is_created(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, status: int, code: int
    ) -> None:
        agent.before(lambda seen: Reply(status, raw=self.PAGE))
        message = plugin.add(pod, settings={"poll-retries": 2}).failed(code)
        assert "html" in message or "not JSON" in message
        assert len(message) < 500
        assert nothing_was_made(plugin, sandbox)

    def test_as_response_to_a_plug_it_rolls_back_the_links(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        serve_pod(agent, 2)
        agent.before(lambda seen: Reply(502, raw=self.PAGE) if seen.method == "POST" else None)
        plugin.add(pod).failed(101)
        assert nothing_was_made(plugin, sandbox)


class TestOversizedResponse:
    """10 MB, more than any list: reading stops at the limit, long before the end."""

    LIST = b"[" + b'{"id": "x"},' * 900_000 + b"{}]"

    @pytest.mark.parametrize("status", [200, 500])
    def test_the_error_is_short_and_immediate(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, status: int
    ) -> None:
        agent.before(lambda seen: Reply(status, raw=self.LIST))
        begin = time.monotonic()
        message = plugin.add(pod, settings={"poll-retries": 100}).failed(100)
        assert time.monotonic() - begin < 5
        assert str(len(self.LIST)) in message
        assert len(message) < 500
        assert nothing_was_made(plugin, sandbox)


class TestSlow:
    def test_an_agent_that_never_answers_times_out(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns
    ) -> None:
        agent.stall("GET")
        begin = time.monotonic()
        assert "timed out waiting for a response" in plugin.add(pod).failed(11)
        assert time.monotonic() - begin < 4
        assert nothing_was_made(plugin, sandbox)

    def test_a_plug_that_times_out_rolls_back_the_links(
        self, agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
    ) -> None:
        serve_pod(agent, 2)
        agent.stall("POST")
        plugin.add(pod).failed(11)
        assert nothing_was_made(plugin, sandbox)

    def test_an_agent_that_answers_a_byte_at_a_time_times_out(
        self, plugin: Plugin, pod: PodSandbox, agent_socket: str
    ) -> None:
        done = threading.Event()

        def drip(listener: socket.socket) -> None:
            client, _ = listener.accept()
            with client, contextlib.suppress(BrokenPipeError):  # it is given up
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                while not done.wait(0.05):
                    client.send(b"[")

        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(agent_socket)
            listener.listen()
            thread = threading.Thread(target=drip, args=(listener,))
            thread.start()
            begin = time.monotonic()
            plugin.add(pod).failed(11)
            assert time.monotonic() - begin < 4
            done.set()
            thread.join(10)

    def test_a_call_for_another_container_is_not_delayed(
        self,
        agent: ScriptedAgent,
        plugin: Plugin,
        pod: PodSandbox,
        serve_pod: ServePod,
        make_netns: Callable[[str], Netns],
    ) -> None:
        serve_pod(agent)
        waiting = PodSandbox(make_netns("pod").path, name="waits")
        came = threading.Event()
        agent.before(lambda seen: came.set() if "waits" in seen.path else None)
        config = plugin.config(settings={"poll-retries": 100})
        process = plugin.start_with(plugin.environment("ADD", waiting), json.dumps(config))
        assert came.wait(10)
        plugin.add(pod).succeeded()
        assert process.poll() is None
        process.kill()
        process.communicate(timeout=10)
