"""A cached result is converted to the version of the configuration, whatever version it has.

The reference is libcni, whose Go types cover 0.1.0 and 0.2.0, 0.3.0 to 0.4.0, 1.0.0 and 1.1.0.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cni_contrail.runtime.errors import ResultError
from cni_contrail.runtime.results import convert_result
from cni_contrail.runtime.versions import SUPPORTED
from tests.support.cni_results import INTERFACE_EXTRAS, ROUTE_EXTRAS, results

FLAT = ("0.1.0", "0.2.0")
LISTED = ("0.3.0", "0.3.1", "0.4.0")
NEWEST = ("1.0.0", "1.1.0")

FULL: dict[str, Any] = {
    "cniVersion": "1.1.0",
    "interfaces": [
        {
            "name": "eth0",
            "mac": "02:00:00:00:00:01",
            "mtu": 1450,
            "sandbox": "/run/netns/x",
            "socketPath": "/run/vhost",
            "pciID": "0000:00:01.0",
        }
    ],
    "ips": [
        {"address": "10.1.0.5/24", "gateway": "10.1.0.1", "interface": 0},
        {"address": "fd00::5/64", "interface": 0},
        {"address": "10.2.0.5/24", "interface": 0},
    ],
    "routes": [
        {"dst": "0.0.0.0/0", "gw": "10.1.0.1", "mtu": 1400, "advmss": 1360, "priority": 5, "table": 7, "scope": 0},
        {"dst": "::/0"},
    ],
    "dns": {"nameservers": ["10.1.0.2"]},
}
WITH_FAMILIES = FULL | {
    "interfaces": [{"name": "eth0", "mac": "02:00:00:00:00:01", "sandbox": "/run/netns/x"}],
    "ips": [
        {"version": "4", "address": "10.1.0.5/24", "gateway": "10.1.0.1", "interface": 0},
        {"version": "6", "address": "fd00::5/64", "interface": 0},
        {"version": "4", "address": "10.2.0.5/24", "interface": 0},
    ],
}
PER_FAMILY: dict[str, Any] = {
    "ip4": {"ip": "10.1.0.5/24", "gateway": "10.1.0.1", "routes": [{"dst": "0.0.0.0/0", "gw": "10.1.0.1"}]},
    "ip6": {"ip": "fd00::5/64", "routes": [{"dst": "::/0"}]},
    "dns": {"nameservers": ["10.1.0.2"]},
}


class TestByExample:
    @pytest.mark.parametrize("version", NEWEST)
    def test_1_0_0_keeps_the_fields_of_1_1_0(self, version: str) -> None:
        assert convert_result(FULL, version) == FULL | {"cniVersion": version}

    @pytest.mark.parametrize("version", LISTED)
    def test_before_1_0_0_addresses_have_their_family_and_interfaces_lose_new_fields(self, version: str) -> None:
        assert convert_result(FULL, version) == WITH_FAMILIES | {"cniVersion": version}

    @pytest.mark.parametrize("version", LISTED)
    def test_an_upgrade_removes_families(self, version: str) -> None:
        converted = convert_result(WITH_FAMILIES | {"cniVersion": version}, "1.1.0")
        assert converted == FULL | {"interfaces": WITH_FAMILIES["interfaces"]}

    @pytest.mark.parametrize("version", FLAT)
    @pytest.mark.parametrize("result", [FULL, WITH_FAMILIES | {"cniVersion": "0.4.0"}])
    def test_0_2_0_keeps_one_address_per_family(self, version: str, result: dict[str, Any]) -> None:
        assert convert_result(result, version) == PER_FAMILY | {"cniVersion": version}

    @pytest.mark.parametrize("version", FLAT)
    def test_an_upgrade_from_0_2_0_builds_lists(self, version: str) -> None:
        assert convert_result(PER_FAMILY | {"cniVersion": version}, "1.0.0") == {
            "cniVersion": "1.0.0",
            "ips": [{"address": "10.1.0.5/24", "gateway": "10.1.0.1"}, {"address": "fd00::5/64"}],
            "routes": [{"dst": "0.0.0.0/0", "gw": "10.1.0.1"}, {"dst": "::/0"}],
            "dns": {"nameservers": ["10.1.0.2"]},
        }

    def test_a_missing_or_wrong_family_is_corrected(self) -> None:
        listed = {"cniVersion": "0.3.1", "ips": [{"version": "4", "address": "fd00::5/64"}, {"address": "10.0.0.1/8"}]}
        assert convert_result(listed, "0.2.0") == {
            "cniVersion": "0.2.0",
            "ip4": {"ip": "10.0.0.1/8"},
            "ip6": {"ip": "fd00::5/64"},
        }

    def test_unknown_keys_are_kept(self) -> None:
        odd = {"cniVersion": "1.0.0", "interfaces": [{"name": "eth0", "colour": "red"}], "vendor.example/x": 1}
        assert convert_result(odd, "0.4.0") == odd | {"cniVersion": "0.4.0"}

    def test_a_result_without_version_has_0_1_0(self) -> None:
        assert convert_result({"ip4": {"ip": "10.1.0.5/24"}}, "1.0.0")["ips"] == [{"address": "10.1.0.5/24"}]


class TestRejected:
    @pytest.mark.parametrize("version", FLAT)
    def test_a_result_without_addresses_has_no_form_in_0_2_0(self, version: str) -> None:
        with pytest.raises(ResultError, match=r"without addresses: not possible before CNI version 0\.3\.0"):
            convert_result({"cniVersion": "1.0.0", "interfaces": []}, version)

    @pytest.mark.parametrize("version", FLAT)
    def test_a_result_without_addresses_is_unchanged_within_0_2_0(self, version: str) -> None:
        assert convert_result({"cniVersion": "0.1.0"}, version) == {"cniVersion": version}

    @pytest.mark.parametrize("stated", ["1.2.0", "9.9", "x"])
    def test_an_unknown_version_is_rejected(self, stated: str) -> None:
        with pytest.raises(ResultError, match=f"CNI version '{stated}' is not supported"):
            convert_result({"cniVersion": stated}, "1.0.0")

    @pytest.mark.parametrize("ips", [7, ["10.0.0.1"], [{}], [{"address": None}]])
    def test_a_malformed_result_is_rejected(self, ips: Any) -> None:
        with pytest.raises(ResultError, match=r"result of CNI version 1\.0\.0: malformed: ips"):
            convert_result({"cniVersion": "1.0.0", "ips": ips}, "0.4.0")


def any_of(*versions: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(versions).flatmap(results)


def along(result: dict[str, Any], way: Sequence[str]) -> dict[str, Any]:
    for version in way:
        result = convert_result(result, version)
        assert result["cniVersion"] == version
    return result


def stripped(result: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Returns the result without some keys of its interfaces."""
    kept = [{key: value for key, value in each.items() if key not in keys} for each in result.get("interfaces", ())]
    return result | ({"interfaces": kept} if kept else {})


class TestInvariants:
    @given(st.sampled_from(SUPPORTED).flatmap(results), st.sampled_from(SUPPORTED))
    def test_versions_of_the_same_form_differ_only_in_the_version(self, result: dict[str, Any], version: str) -> None:
        forms = (FLAT, LISTED, NEWEST)
        if any({result["cniVersion"], version} <= set(form) for form in forms):
            assert convert_result(result, version) == result | {"cniVersion": version}

    @given(any_of(*LISTED), st.lists(st.sampled_from((*LISTED, *NEWEST))))
    def test_an_upgrade_and_downgrade_lose_nothing(self, result: dict[str, Any], way: list[str]) -> None:
        assert along(result, [*way, result["cniVersion"]]) == result

    @given(any_of(*FLAT), st.sampled_from((*LISTED, *NEWEST)))
    def test_an_upgrade_from_0_2_0_and_downgrade_lose_only_extras_of_routes(
        self, result: dict[str, Any], version: str
    ) -> None:
        came_back = along(result, [version, result["cniVersion"]])
        for family in ("ip4", "ip6"):
            for route in result.get(family, {}).get("routes", ()):
                for key in ROUTE_EXTRAS:
                    route.pop(key, None)
        assert came_back == result

    @given(any_of(*NEWEST), st.lists(st.sampled_from((*LISTED, *NEWEST))))
    def test_a_downgrade_to_0_4_0_and_upgrade_lose_only_extras_of_interfaces(
        self, result: dict[str, Any], way: list[str]
    ) -> None:
        lost = INTERFACE_EXTRAS if set(way) & set(LISTED) else ()
        assert along(result, [*way, result["cniVersion"]]) == stripped(result, *lost)

    @given(any_of(*LISTED, *NEWEST).filter(lambda result: "ips" in result), st.sampled_from(FLAT))
    def test_a_downgrade_to_0_2_0_and_upgrade_keep_one_address_per_family(
        self, result: dict[str, Any], version: str
    ) -> None:
        start = result["cniVersion"]
        left = along(result, [version, start])
        first = {
            family: next((entry for entry in result["ips"] if (":" in entry["address"]) == (family == 6)), None)
            for family in (4, 6)
        }
        kept = [{key: value for key, value in entry.items() if key != "interface"} for entry in first.values() if entry]
        assert left["ips"] == kept
        assert [(route["dst"], route.get("gw")) for route in left.get("routes", ())] == [
            (route["dst"], route.get("gw"))
            for family, entry in first.items()
            if entry
            for route in result.get("routes", ())
            if (":" in route["dst"]) == (family == 6)
        ]
        assert left.get("dns") == result.get("dns")
        assert left.keys() <= {"cniVersion", "ips", "routes", "dns"}

    @given(st.sampled_from(SUPPORTED).flatmap(results), st.data())
    def test_conversion_in_steps_equals_conversion_at_once(self, result: dict[str, Any], data: st.DataObject) -> None:
        start = SUPPORTED.index(result["cniVersion"])
        end = data.draw(st.integers(0 if result.get("ips") else 2, len(SUPPORTED) - 1))
        between = range(min(start, end), max(start, end) + 1)
        middle = data.draw(st.sampled_from(between))
        assert along(result, [SUPPORTED[middle], SUPPORTED[end]]) == convert_result(result, SUPPORTED[end])

    @given(any_of(*SUPPORTED), st.sampled_from(SUPPORTED))
    def test_the_given_result_is_not_modified(self, result: dict[str, Any], version: str) -> None:
        if version in FLAT and result["cniVersion"] not in FLAT and "ips" not in result:
            return
        before = repr(result)
        convert_result(result, version)
        assert repr(result) == before
