"""Lines before exhausted networks: only the head tries, and nobody overtakes."""

from hypothesis import given
from hypothesis import strategies as st

from manager.controller.pending_address_queue import PendingAddressQueue


class Lines(PendingAddressQueue):
    """Lines that note whom they have tried again."""

    def __init__(self) -> None:
        self.retried: list[str] = []
        super().__init__(self.retried.append)


def test_without_a_line_everybody_may_try() -> None:
    assert Lines().blocked_by("a", ["n1", "n2"]) is None


def test_who_comes_later_is_behind_and_the_head_may_try() -> None:
    lines = Lines()
    lines.join("n1", "a")
    assert lines.blocked_by("a", ["n1"]) is None
    assert lines.blocked_by("b", ["n0", "n1"]) == "n1"
    assert lines.blocked_by("b", ["n0"]) is None


def test_a_release_has_the_head_try_again_and_nobody_else() -> None:
    lines = Lines()
    lines.join("n1", "a")
    lines.join("n1", "b")
    lines.requeue_head("n1")
    lines.requeue_head("n2")
    assert lines.retried == ["a"]


def test_when_the_head_leaves_the_next_one_tries() -> None:
    lines = Lines()
    for pod in "abc":
        lines.join("n1", pod)
    lines.leave("b")
    assert lines.retried == []
    lines.leave("a")
    assert lines.retried == ["c"]
    lines.leave("c")
    assert lines.blocked_by("d", ["n1"]) is None


def test_a_pod_that_goes_to_another_line_keeps_the_place_of_its_arrival() -> None:
    lines = Lines()
    lines.join("n1", "a")
    lines.join("n2", "b")
    lines.join("n2", "a")
    assert lines.blocked_by("b", ["n2"]) == "n2"
    assert lines.blocked_by("a", ["n2"]) is None
    assert lines.blocked_by("c", ["n1"]) is None


def test_one_that_left_and_comes_again_is_last() -> None:
    lines = Lines()
    lines.join("n1", "a")
    lines.join("n1", "b")
    lines.leave("a")
    lines.join("n1", "a")
    assert lines.blocked_by("a", ["n1"]) == "n1"


@given(
    st.lists(
        st.tuples(st.sampled_from(["join n1", "join n2", "leave"]), st.sampled_from("abcd")),
        max_size=30,
    )
)
def test_at_the_head_is_always_who_arrived_first(steps: list[tuple[str, str]]) -> None:
    lines = Lines()
    arrivals: list[str] = []
    place: dict[str, str] = {}
    for step, pod in steps:
        if step == "leave":
            lines.leave(pod)
            arrivals = [other for other in arrivals if other != pod]
            place.pop(pod, None)
        else:
            network = step.removeprefix("join ")
            lines.join(network, pod)
            arrivals += [] if pod in arrivals else [pod]
            place[pod] = network
        for network in ("n1", "n2"):
            waiting = [each for each in arrivals if place[each] == network]
            assert [each for each in waiting if lines.blocked_by(each, [network]) is None] == waiting[:1]
