"""Pending notifications: stored when the agent is unreachable, and sent later within limits."""

import fcntl
import itertools
import json
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import cni_contrail.agent.notifications as module
from cni_contrail.agent import postponement
from cni_contrail.agent.client import AgentClient
from cni_contrail.agent.http import Endpoint
from cni_contrail.agent.notifications import Notification, PendingNotifications
from cni_contrail.agent.postponement import next_pause
from cni_contrail.errors import TryAgainError
from cni_contrail.log import Log
from tests.support.scripted_agents import ReceivedRequest, Reply, ScriptedAgent, ScriptedNodeAgent

MACHINE = "5c1e7a52-9d0b-4f5e-8a43-0d6f3c1b7e10"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def pending(state: Path, tmp_path: Path) -> PendingNotifications:
    return PendingNotifications(str(state), Log(str(tmp_path / "log")))


@pytest.fixture
def client(agent_socket: str) -> AgentClient:
    return AgentClient(Endpoint(agent_socket, "", 0))


def kept(state: Path) -> list[str]:
    folder = state / ".pending"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def of(container: str, interface: str = "") -> Notification:
    return Notification(container, MACHINE, interface, "")


def test_a_reachable_agent_is_notified_at_once(
    agent: ScriptedAgent, client: AgentClient, pending: PendingNotifications, state: Path
) -> None:
    pending.notify(client, of("c1", "5c1e7a52-0000-4f5e-8a43-0d6f3c1b7e10"), 1)
    [seen] = agent.requests
    assert (seen.method, seen.path) == ("DELETE", f"/vm/{MACHINE}/5c1e7a52-0000-4f5e-8a43-0d6f3c1b7e10")
    assert seen.query == {"vm-id": "c1"}
    assert kept(state) == []


def test_an_unreachable_agent_is_notified_later(
    client: AgentClient, pending: PendingNotifications, state: Path, agent_socket: str
) -> None:
    for container in ("c1", "c2"):
        pending.notify(client, of(container), 1)
    assert kept(state) == [f"c1.{MACHINE}.json", f"c2.{MACHINE}.json"]
    pending.send_batch(client)
    assert len(kept(state)) == 2
    with ScriptedNodeAgent(agent_socket) as agent:
        pending.send_batch(client)
        assert [seen.query["vm-id"] for seen in agent.requests] == ["c1", "c2"]
    assert not (state / ".pending").exists()


def test_one_of_a_newer_release_is_sent(
    client: AgentClient, pending: PendingNotifications, state: Path, agent_socket: str
) -> None:
    pending.notify(client, of("c1"), 1)
    (file,) = (state / ".pending").iterdir()
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": 2}))
    with ScriptedNodeAgent(agent_socket) as agent:
        pending.send_batch(client)
        assert [seen.query["vm-id"] for seen in agent.requests] == ["c1"]


def test_one_call_sends_a_limited_number(
    client: AgentClient, pending: PendingNotifications, state: Path, agent_socket: str
) -> None:
    for number in range(20):
        pending.notify(client, of(f"c{number:02}"), 1)
    with ScriptedNodeAgent(agent_socket) as agent:
        pending.send_batch(client)
        assert len(agent.requests) == 16
        pending.send_batch(client)
        assert len(agent.requests) == 20
    assert kept(state) == []


def test_one_call_sends_for_a_limited_time(
    client: AgentClient, pending: PendingNotifications, state: Path, agent_socket: str
) -> None:
    for number in range(3):
        pending.notify(client, of(f"c{number}"), 1)
    with ScriptedNodeAgent(agent_socket) as agent:
        agent.stall("DELETE")
        begin = time.monotonic()
        pending.send_batch(client)
        assert time.monotonic() - begin < 2
    assert len(kept(state)) == 3


class TestAnAgentThatDoesNotProcessOne:
    """It takes the request, but is stuck or not ready for it alone."""

    @pytest.fixture
    def answered(self) -> Iterator[threading.Event]:
        answered = threading.Event()
        yield answered
        answered.set()

    @pytest.mark.parametrize("is_ready", [True, False])
    def test_others_are_sent_by_the_next_call(
        self,
        client: AgentClient,
        pending: PendingNotifications,
        state: Path,
        agent: ScriptedAgent,
        answered: threading.Event,
        is_ready: bool,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def respond(seen: ReceivedRequest) -> Reply | None:
            if seen.query["vm-id"] != "c0":
                return None
            if is_ready:
                answered.wait(10)
            return Reply(503, {"error": "not ready"})

        monkeypatch.setattr(postponement, "_FIRST_PAUSE", 30)
        agent.before(respond)
        for number in range(3):
            pending.enqueue(of(f"c{number}"))
        pending.send_batch(client)
        assert len(kept(state)) == 3
        pending.send_batch(client)
        assert kept(state) == [f"c0.{MACHINE}.json"]


def test_those_of_an_unreachable_agent_are_not_postponed(
    client: AgentClient, pending: PendingNotifications, state: Path, agent_socket: str
) -> None:
    pending.enqueue(of("c0"))
    pending.send_batch(client)
    assert len(kept(state)) == 1
    with ScriptedNodeAgent(agent_socket):
        pending.send_batch(client)
    assert kept(state) == []


def test_a_rejected_one_does_not_block_the_others(
    client: AgentClient, pending: PendingNotifications, state: Path, tmp_path: Path, agent_socket: str
) -> None:
    for number in range(3):
        pending.notify(client, of(f"c{number}"), 1)
    with ScriptedNodeAgent(agent_socket) as agent:
        agent.before(lambda seen: Reply(400, {"error": "what?"}) if seen.query["vm-id"] == "c1" else None)
        pending.send_batch(client)
        assert len(agent.requests) == 3
    assert kept(state) == []
    assert "what?" in (tmp_path / "log").read_text()


class TestAnAgentThatFails:
    """It answers with an error that may pass, as ours does when its disk is full."""

    @pytest.fixture
    def recovered(self) -> threading.Event:
        return threading.Event()

    @pytest.fixture(autouse=True)
    def failing(self, agent: ScriptedAgent, recovered: threading.Event) -> ScriptedAgent:
        def fail(seen: ReceivedRequest) -> Reply | None:
            fails = seen.query["vm-id"].startswith("c1") and not recovered.is_set()
            return Reply(500, {"error": "No space left on device"}) if fails else None

        agent.before(fail)
        return agent

    def test_it_is_notified_later(
        self, client: AgentClient, pending: PendingNotifications, state: Path, recovered: threading.Event
    ) -> None:
        pending.notify(client, of("c1"), 1)
        assert kept(state) == [f"c1.{MACHINE}.json"]
        pending.send_all(client)
        assert kept(state) == [f"c1.{MACHINE}.json"]
        recovered.set()
        os.utime(state / ".pending" / f"c1.{MACHINE}.json", (0, 0))  # the pause is over
        pending.send_all(client)
        assert kept(state) == []

    def test_others_are_sent_meanwhile_and_what_failed_waits(
        self,
        client: AgentClient,
        pending: PendingNotifications,
        state: Path,
        tmp_path: Path,
        failing: ScriptedAgent,
    ) -> None:
        for number in range(20):  # more than a batch
            pending.enqueue(of(f"c1{number:02}"))
        pending.enqueue(of("c2"))
        pending.send_all(client)
        assert len(failing.requests) == 21
        [line] = (tmp_path / "log").read_text().splitlines()
        assert line.endswith("No space left on device: 20 notifications are retried later")
        assert len(kept(state)) == 20
        pending.enqueue(of("c3"))
        pending.send_batch(client)
        assert failing.requests[-1].query["vm-id"] == "c3"
        assert len(failing.requests) == 22
        assert len(kept(state)) == 20

    def test_pauses_grow_up_to_a_limit(self, pending: PendingNotifications, client: AgentClient, state: Path) -> None:
        pending.enqueue(of("c1"))
        pending.send_all(client)
        [path] = (state / ".pending").iterdir()
        status = path.stat()
        pauses = [status.st_mtime - status.st_ctime]
        assert 0.5 < pauses[0] <= 1.1
        for _ in range(10):
            pauses.append(next_pause(pauses[-1]))
        assert all(later > earlier for earlier, later in itertools.pairwise(pauses[:5]))
        assert 45 <= pauses[-1] <= 60
        assert next_pause(40) != next_pause(40)

    @pytest.mark.parametrize("status", [408, 429, 500, 502])
    def test_it_keeps_what_may_succeed_later(
        self, client: AgentClient, pending: PendingNotifications, state: Path, agent: ScriptedAgent, status: int
    ) -> None:
        agent.before(lambda _seen: Reply(status, {"error": "not now"}))
        pending.notify(client, of("c3"), 1)
        assert len(kept(state)) == 1


def test_a_malformed_one_is_dropped(
    agent: ScriptedAgent, client: AgentClient, pending: PendingNotifications, state: Path
) -> None:
    (state / ".pending").mkdir(parents=True)
    for number, content in enumerate(("", "{", "[]", '{"container_id": "c1"}')):
        (state / ".pending" / f"{number}.json").write_text(content)
    pending.send_batch(client)
    assert agent.requests == []
    assert kept(state) == []


def test_two_calls_do_not_send_the_same_one(
    agent: ScriptedAgent, client: AgentClient, pending: PendingNotifications, state: Path
) -> None:
    agent.stop()
    pending.notify(client, of("c1"), 1)
    agent.start()
    held = os.open(state / ".pending" / kept(state)[0], os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        pending.send_batch(client)
    finally:
        os.close(held)
    assert agent.requests == []
    assert len(kept(state)) == 1


class TestAnAgentThatDoesNotAnswer:
    """One call waits for the agent's answer to the first of the pending notifications."""

    @pytest.fixture(autouse=True)
    def sending(self, client: AgentClient, pending: PendingNotifications, agent_socket: str) -> Iterator[None]:
        pending.notify(client, of("c0"), 1)
        with ScriptedNodeAgent(agent_socket) as agent, ThreadPoolExecutor() as pool:
            came = agent.stall("DELETE")
            sending = pool.submit(pending.send_all, client)
            assert came.wait(10)
            yield
            assert not sending.done()  # what the test did came in between
            sending.result(timeout=10)

    def test_no_notification_is_lost(self, pending: PendingNotifications, state: Path) -> None:
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(pending.enqueue, [of(f"c{number}") for number in range(200)]))
        assert pending.count() == len(kept(state)) == 200

    def test_only_its_own_container_has_to_wait(self, pending: PendingNotifications, state: Path) -> None:
        pending.enqueue(of("c1"))
        pending.discard("c1")
        assert kept(state) == [f"c0.{MACHINE}.json"]


def test_none_is_lost_while_others_are_sent(
    agent: ScriptedAgent, client: AgentClient, pending: PendingNotifications, state: Path
) -> None:
    """The directory is removed whenever it is empty."""
    with ThreadPoolExecutor(8) as pool:
        for number in range(200):
            pool.submit(pending.enqueue, of(f"c{number}"))
            pool.submit(pending.send_all, client)
    pending.send_all(client)
    assert {seen.query["vm-id"] for seen in agent.requests} == {f"c{number}" for number in range(200)}
    assert kept(state) == []


def test_what_killed_calls_left_is_removed_later(
    agent: ScriptedAgent, client: AgentClient, pending: PendingNotifications, state: Path
) -> None:
    pending.enqueue(of("c1"))
    for name, age in (("old.json.1.part", 61), ("new.json.1.part", 0)):
        path = state / ".pending" / name
        path.touch()
        os.utime(path, (time.time() - age,) * 2)
    assert pending.count() == 1
    pending.send_batch(client)
    assert kept(state) == ["new.json.1.part"]


class TestDiscarding:
    @pytest.fixture
    def three(self, client: AgentClient, pending: PendingNotifications) -> None:
        for notification in (of("c1", "a"), of("c1", "b"), of("c1.x")):
            pending.notify(client, notification, 1)

    def test_those_of_a_container_that_is_attached_again_are_discarded(
        self, three: None, pending: PendingNotifications, state: Path
    ) -> None:
        pending.discard("c1")
        assert kept(state) == [f"c1.x.{MACHINE}.json"]
        pending.discard("c9")
        assert len(kept(state)) == 1

    def test_it_fails_while_another_call_is_sending(
        self, three: None, pending: PendingNotifications, state: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "_LOCK_TIMEOUT", 0.1)
        held = os.open(state / ".pending" / "c1.a.json", os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
        try:
            with pytest.raises(TryAgainError):
                pending.discard("c1")
        finally:
            os.close(held)


class TestBounds:
    def test_beyond_the_limit_one_is_dropped_and_logged(
        self,
        client: AgentClient,
        pending: PendingNotifications,
        state: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(module, "_MAX_PENDING", 2)
        for number in range(3):
            pending.notify(client, of(f"c{number}"), 1)
        assert len(kept(state)) == 2
        assert "dropping a notification" in (tmp_path / "log").read_text()

    def test_an_unwritable_directory_is_logged_and_no_error(self, client: AgentClient, tmp_path: Path) -> None:
        log = tmp_path / "log"
        PendingNotifications("/proc/none", Log(str(log))).notify(client, of("c1"), 1)
        assert "dropping a notification" in log.read_text()
