"""A cached result reaches a plugin in the version of its configuration, whatever version it was made in."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cni_contrail.protocol.versions import SUPPORTED
from cni_contrail.runtime.errors import ResultError
from cni_contrail.runtime.results import convert_result

LISTED = ("0.3.0", "0.3.1", "0.4.0")
FLAT = ("0.1.0", "0.2.0")

NEWEST: dict[str, Any] = {
    "cniVersion": "1.0.0",
    "interfaces": [{"name": "eth0", "mac": "02:00:00:00:00:01", "sandbox": "/run/netns/x"}],
    "ips": [
        {"address": "10.1.0.5/24", "gateway": "10.1.0.1", "interface": 0},
        {"address": "fd00::5/64", "interface": 0},
        {"address": "10.2.0.5/24", "interface": 0},
    ],
    "routes": [{"dst": "0.0.0.0/0", "gw": "10.1.0.1"}, {"dst": "::/0"}],
    "dns": {"nameservers": ["10.1.0.2"]},
}
WITH_FAMILIES = NEWEST | {
    "ips": [
        {"version": "4", "address": "10.1.0.5/24", "gateway": "10.1.0.1", "interface": 0},
        {"version": "6", "address": "fd00::5/64", "interface": 0},
        {"version": "4", "address": "10.2.0.5/24", "interface": 0},
    ]
}
PER_FAMILY: dict[str, Any] = {
    "ip4": {"ip": "10.1.0.5/24", "gateway": "10.1.0.1", "routes": [{"dst": "0.0.0.0/0", "gw": "10.1.0.1"}]},
    "ip6": {"ip": "fd00::5/64", "routes": [{"dst": "::/0"}]},
    "dns": {"nameservers": ["10.1.0.2"]},
}


@pytest.mark.parametrize("version", LISTED)
def test_addresses_gain_their_family_and_lose_it(version: str) -> None:
    listed = WITH_FAMILIES | {"cniVersion": version}
    assert convert_result(NEWEST, version) == listed
    assert convert_result(listed, "1.0.0") == NEWEST


@pytest.mark.parametrize("version", FLAT)
@pytest.mark.parametrize("result", [NEWEST, WITH_FAMILIES | {"cniVersion": "0.4.0"}])
def test_the_first_address_of_each_family_and_its_routes_remain(version: str, result: dict[str, Any]) -> None:
    assert convert_result(result, version) == PER_FAMILY | {"cniVersion": version}


@pytest.mark.parametrize("version", FLAT)
def test_one_address_per_family_becomes_a_list(version: str) -> None:
    assert convert_result(PER_FAMILY | {"cniVersion": version}, "1.0.0") == {
        "cniVersion": "1.0.0",
        "ips": [{"address": "10.1.0.5/24", "gateway": "10.1.0.1"}, {"address": "fd00::5/64"}],
        "routes": [{"dst": "0.0.0.0/0", "gw": "10.1.0.1"}, {"dst": "::/0"}],
        "dns": {"nameservers": ["10.1.0.2"]},
    }


@pytest.mark.parametrize("version", FLAT)
def test_no_address_cannot_be_told_in_the_first_versions(version: str) -> None:
    with pytest.raises(ResultError, match=r"without addresses cannot be told before CNI version 0\.3\.0"):
        convert_result({"cniVersion": "1.0.0", "interfaces": []}, version)


def test_a_result_that_states_no_version_is_of_the_first_one() -> None:
    assert convert_result({"ip4": {"ip": "10.1.0.5/24"}}, "1.0.0")["ips"] == [{"address": "10.1.0.5/24"}]


@pytest.mark.parametrize("stated", ["1.1.0", "9.9", "x"])
def test_a_version_that_is_not_known_is_told(stated: str) -> None:
    with pytest.raises(ResultError, match=f"CNI version '{stated}' cannot be read"):
        convert_result({"cniVersion": stated}, "1.0.0")


@pytest.mark.parametrize("ips", [7, ["10.0.0.1"], [{}], [{"address": None}]])
def test_a_malformed_result_is_told(ips: Any) -> None:
    with pytest.raises(ResultError, match=r"result of CNI version 1\.0\.0 is malformed"):
        convert_result({"cniVersion": "1.0.0", "ips": ips}, "0.4.0")


ADDRESSES = st.ip_addresses(v=4).map(lambda ip: f"{ip}/24") | st.ip_addresses(v=6).map(lambda ip: f"{ip}/64")
ENTRIES = st.fixed_dictionaries(
    {"address": ADDRESSES}, optional={"interface": st.just(0), "gateway": st.just("10.0.0.1")}
)
RESULTS = st.fixed_dictionaries(
    {"cniVersion": st.just("1.0.0")},
    optional={
        "ips": st.lists(ENTRIES, min_size=1),
        "interfaces": st.just([{"name": "eth0"}]),
        "routes": st.lists(st.fixed_dictionaries({"dst": ADDRESSES}), min_size=1),
    },
)


@given(RESULTS, st.lists(st.sampled_from((*LISTED, "1.0.0"))))
def test_nothing_is_lost_on_any_way_through_the_listed_versions(result: dict[str, Any], way: list[str]) -> None:
    converted = result
    for version in way:
        converted = convert_result(converted, version)
        assert converted["cniVersion"] == version
    assert convert_result(converted, "1.0.0") == result


@given(RESULTS, st.sampled_from(SUPPORTED))
def test_conversion_to_its_own_version_changes_nothing(result: dict[str, Any], version: str) -> None:
    if version in FLAT and not result.get("ips"):
        return
    once = convert_result(result, version)
    assert convert_result(once, version) == once
