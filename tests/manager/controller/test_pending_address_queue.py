"""Pending-address queues: only the head allocates, and no pod overtakes another."""

from hypothesis import given
from hypothesis import strategies as st

from manager.controller.pending_address_queue import PendingAddressQueue


class Queues(PendingAddressQueue):
    """Queues that record which pods they requeue."""

    def __init__(self) -> None:
        self.requeued: list[str] = []
        super().__init__(self.requeued.append)


def test_without_a_queue_any_pod_may_allocate() -> None:
    assert Queues().blocked_by("a", ["n1", "n2"]) is None


def test_a_later_pod_is_blocked_and_the_head_may_allocate() -> None:
    queues = Queues()
    queues.join("n1", "a")
    assert queues.blocked_by("a", ["n1"]) is None
    assert queues.blocked_by("b", ["n0", "n1"]) == "n1"
    assert queues.blocked_by("b", ["n0"]) is None


def test_a_release_requeues_only_the_head() -> None:
    queues = Queues()
    queues.join("n1", "a")
    queues.join("n1", "b")
    queues.requeue_head("n1")
    queues.requeue_head("n2")
    assert queues.requeued == ["a"]


def test_the_next_pod_is_requeued_when_the_head_leaves() -> None:
    queues = Queues()
    for pod in "abc":
        queues.join("n1", pod)
    queues.leave("b")
    assert queues.requeued == []
    queues.leave("a")
    assert queues.requeued == ["c"]
    queues.leave("c")
    assert queues.blocked_by("d", ["n1"]) is None


def test_a_pod_that_moves_to_another_queue_keeps_its_arrival() -> None:
    queues = Queues()
    queues.join("n1", "a")
    queues.join("n2", "b")
    queues.join("n2", "a")
    assert queues.blocked_by("b", ["n2"]) == "n2"
    assert queues.blocked_by("a", ["n2"]) is None
    assert queues.blocked_by("c", ["n1"]) is None


def test_a_pod_that_left_and_returns_is_last() -> None:
    queues = Queues()
    queues.join("n1", "a")
    queues.join("n1", "b")
    queues.leave("a")
    queues.join("n1", "a")
    assert queues.blocked_by("a", ["n1"]) == "n1"


@given(
    st.lists(
        st.tuples(st.sampled_from(["join n1", "join n2", "leave"]), st.sampled_from("abcd")),
        max_size=30,
    )
)
def test_the_head_is_always_the_first_arrival(steps: list[tuple[str, str]]) -> None:
    queues = Queues()
    arrivals: list[str] = []
    queue_of: dict[str, str] = {}
    for step, pod in steps:
        if step == "leave":
            queues.leave(pod)
            arrivals = [other for other in arrivals if other != pod]
            queue_of.pop(pod, None)
        else:
            network = step.removeprefix("join ")
            queues.join(network, pod)
            arrivals += [] if pod in arrivals else [pod]
            queue_of[pod] = network
        for network in ("n1", "n2"):
            waiting = [each for each in arrivals if queue_of[each] == network]
            assert [each for each in waiting if queues.blocked_by(each, [network]) is None] == waiting[:1]
