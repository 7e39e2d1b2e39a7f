"""The parts of the benchmark of networks that need a real API server run, and nothing is lost or written in vain."""

from typing import Any

from tests.bench.network import main as measure_network


def only(part: str) -> Any:
    return measure_network(part, quick=True)[part]


def test_the_time_until_other_nodes_are_programmed_is_measured() -> None:
    (measured,) = only("programming").values()
    assert 0 < measured["median_ms"] <= measured["p99_ms"]


def test_resyncs_of_killed_processes_are_measured() -> None:
    (measured,) = only("resync").values()
    assert {each["ms"] > 0 for each in measured.values()} == {True}


def test_restarts_lose_nothing() -> None:
    for measured in only("restarts").values():
        assert measured["packets"] > 0
        assert (measured["lost"], measured["broken TCP connections"]) == (0, 0)


def test_pods_of_index_0_write_no_slices_once_their_nodes_have_blocks() -> None:
    of_each, others = only("churn").values()
    assert of_each["POST virtualmachines"] > 0
    assert "POST pods" not in of_each | others


def test_watches_of_slices_are_measured() -> None:
    measured = only("watches")
    assert [each["watches"] > 0 for name, each in measured.items() if "agents, networks" in name] == [True, True]
