"""Reports on the datapath: strict, bounded, and what the latest one and all of them together say."""

import json
from typing import Any

import pytest

from agent_api.datapath.report import DatapathReport, parse_report
from agent_api.datapath.reports import MAX_AGE, MAX_REPAIRED, DatapathReports
from agent_api.errors import BadRequestError
from tests.support.fake_clock import FakeClock


def make_report(**fields: Any) -> DatapathReport:
    """A report without problems, with these fields."""
    return parse_report(json.dumps({"version": "v", "changes": 0, "repaired": 0, "seconds": 0.1, **fields}).encode())


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def reports(clock: FakeClock) -> DatapathReports:
    return DatapathReports(clock=clock)


def test_every_key_is_read() -> None:
    report = make_report(
        problems={"5": "no bridge"},
        missing={"0": ["tap0"], "5": ["tap1"]},
        drops={"5": {"spoofing": 3, "ports": {"tap1": 2}}},
    )
    assert report.problems == {"5": "no bridge"}
    assert report.missing == {"0": ("tap0",), "5": ("tap1",)}
    assert (report.drops["5"].spoofing, report.drops["5"].broadcast) == (3, 0)
    assert report.drops["5"].ports == {"tap1": 2}


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"version": ""}, "version"),
        ({"version": "a\n"}, "version"),
        ({"changes": -1}, "changes"),
        ({"repaired": 2**53}, "repaired"),
        ({"repaired": 1.5}, "repaired"),
        ({"seconds": -0.1}, "seconds"),
        ({"seconds": None}, "seconds"),
        ({"problems": {"x": "text"}}, "problems"),
        ({"problems": {"05": "text"}}, "problems"),
        ({"problems": {"5\n": "text"}}, "problems"),
        ({"problems": {"5": "two\nlines"}}, "problems"),
        ({"problems": {"5": "x" * 513}}, "problems"),
        ({"problems": {str(vni): "x" for vni in range(4097)}}, "problems"),
        ({"missing": {"5": ["a/b"]}}, "missing"),
        ({"missing": {"5": ["x" * 16]}}, "missing"),
        ({"drops": {"5": {"spoofing": -1}}}, "drops"),
        ({"refused": [{"vni": 0, "subnet": "10.0.0.0/8", "reason": "x"}]}, "refused"),
        ({"refused": [{"vni": 5, "subnet": "10.0.0.0", "reason": "x"}]}, "refused"),
        ({"refused": [{"vni": 5, "subnet": "10.0.0.0/8", "reason": "Two words"}]}, "refused"),
        ({"refused": [{"vni": 5, "subnet": "10.0.0.0/8", "reason": "x", "overlaps": "a\nb"}]}, "refused"),
        ({"refused": [{"vni": 5, "subnet": "10.0.0.0/8", "reason": "x"}] * 4097}, "refused"),
        ({"missing-modules": ["nf tables"]}, "missing-modules"),
        ({"missing-modules": ["bridge"] * 65}, "missing-modules"),
        ({"drops": {"5": {"ports": {"a/b": 1}}}}, "drops"),
        ({"drops": {"5": {"ports": {"tap1": -1}}}}, "drops"),
        ({"repaired-networks": {"x": 1}}, "repaired-networks"),
        ({"repaired-networks": {"5": -1}}, "repaired-networks"),
        ({"counters": {"x": {}}}, "counters"),
        ({"counters": {"5": {"a/b": [0, 0, 0, 0]}}}, "counters"),
        ({"counters": {"5": {"tap1": [0, 0, 0]}}}, "counters"),
        ({"counters": {"5": {"tap1": [0, 0, 0, -1]}}}, "counters"),
        ({"counters": {"5": {f"tap{index}": [0, 0, 0, 0] for index in range(4097)}}}, "counters"),
    ],
)
def test_a_wrong_value_is_named(fields: dict[str, Any], key: str) -> None:
    with pytest.raises(BadRequestError, match=key):
        make_report(**fields)


def test_repairs_are_counted_by_network_those_of_the_latest(clock: FakeClock) -> None:
    reports = DatapathReports(clock=clock, wall_clock=lambda: 1_800_000_000.0 + clock())
    reports.add(make_report(**{"repaired-networks": {"5": 1, "7": 2}}))
    clock.advance(60)
    reports.add(make_report(**{"repaired-networks": {"5": 1}}))
    found = reports.repaired_networks
    assert [(vni, each.repairs) for vni, each in found.items()] == [("7", 2), ("5", 2)]
    assert found["5"].latest - found["7"].latest == 60
    reports.add(make_report(**{"repaired-networks": {str(vni): 1 for vni in range(100, 100 + MAX_REPAIRED)}}))
    assert len(found) == MAX_REPAIRED
    assert "5" not in found


def test_counters_continue_until_others_are_reported(reports: DatapathReports) -> None:
    reports.add(make_report(counters={"5": {"tap1": [1, 2, 3, 4]}}))
    reports.add(make_report())
    found = reports.counters["5"]["tap1"]
    assert (found.received_packets, found.received_bytes, found.sent_packets, found.sent_bytes) == (1, 2, 3, 4)
    reports.add(make_report(counters={}))
    assert reports.counters == {}


def test_keys_of_a_newer_process_are_ignored() -> None:
    refused = {"vni": 5, "subnet": "10.0.0.0/8", "reason": "new-reason", "surplus": 1}
    report = make_report(surplus=1, drops={"5": {"weather": 1, "spoofing": 2}}, refused=[refused])
    assert (report.drops["5"].spoofing, report.refused[0].reason) == (2, "new-reason")


def test_repairs_are_counted_by_kind_and_unknown_kinds_together(reports: DatapathReports) -> None:
    reports.add(make_report(repairs={"filter": 2, "bridge": 1}))
    reports.add(make_report(repairs={"filter": 1, "of-a-newer-daemon": 4}))
    assert reports.repairs == {"filter": 3, "bridge": 1, "other": 4}


def test_silence_is_a_problem_after_a_minute(reports: DatapathReports, clock: FakeClock) -> None:
    assert reports.problems() == []
    clock.now += MAX_AGE
    assert reports.problems() == []
    clock.now += 1
    (problem,) = reports.problems()
    assert problem == "datapath: nothing reported for more than 60 s: contrail-cnid does not program it"
    reports.add(make_report())
    assert reports.problems() == []


def test_problems_of_the_latest_report_are_named_by_network(reports: DatapathReports) -> None:
    reports.add(make_report(problems={"7": "old"}))
    reports.add(make_report(problems={"12": "no bridge", "5": "subnet 10.0.0.0/8 overlaps eth0", "0": "no route"}))
    assert reports.problems() == [
        "datapath: index 0: no route",
        "datapath: VNI 5: subnet 10.0.0.0/8 overlaps eth0",
        "datapath: VNI 12: no bridge",
    ]


def test_repaired_objects_are_added_up(reports: DatapathReports) -> None:
    for repaired in (1, 0, 2):
        reports.add(make_report(repaired=repaired))
    assert reports.repaired == 3


def test_drops_are_counted_from_the_first_report_and_restart_with_their_network(reports: DatapathReports) -> None:
    reports.add(make_report(drops={"5": {"spoofing": 100, "broadcast": 1}}))
    assert reports.drops["spoofing"] == 0
    reports.add(make_report(drops={"5": {"spoofing": 103, "broadcast": 1}, "6": {"broadcast": 2}}))
    assert (reports.drops["spoofing"], reports.drops["broadcast"]) == (3, 2)
    reports.add(make_report(drops={"5": {"spoofing": 4, "broadcast": 1}}))
    assert (reports.drops["spoofing"], reports.drops["broadcast"]) == (7, 2)


def test_drops_of_a_network_that_could_not_be_read_are_counted_once(reports: DatapathReports) -> None:
    reports.add(make_report(drops={"5": {"spoofing": 100}}))
    reports.add(make_report(problems={"5": "locked by another process"}))
    reports.add(make_report(problems={"5": "locked by another process"}))
    reports.add(make_report(drops={"5": {"spoofing": 101}}))
    assert reports.drops["spoofing"] == 1


def test_a_network_that_was_made_again_counts_from_its_first_drop(reports: DatapathReports) -> None:
    reports.add(make_report(drops={"5": {"spoofing": 100}}))
    reports.add(make_report())
    reports.add(make_report(drops={"5": {"spoofing": 101}}))
    assert reports.drops["spoofing"] == 101


def test_a_missing_link_is_known_from_a_current_report_only(reports: DatapathReports, clock: FakeClock) -> None:
    assert not reports.is_missing(5, "tap1")
    reports.add(make_report(missing={"5": ["tap1"]}))
    assert reports.is_missing(5, "tap1")
    assert not reports.is_missing(6, "tap1")
    clock.now += MAX_AGE + 1
    assert not reports.is_missing(5, "tap1")


def test_a_missing_link_of_one_pod_is_no_problem_of_the_node(reports: DatapathReports) -> None:
    reports.add(make_report(missing={"5": ["tap1"]}))
    assert reports.problems() == []
