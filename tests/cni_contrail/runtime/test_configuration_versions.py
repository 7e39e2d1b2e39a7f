"""A list may offer several versions (`cniVersions`): the runtime selects the highest one that it supports."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cni_contrail.runtime.configuration import NetworkList, parse_list, parse_single
from cni_contrail.runtime.errors import NetworkConfigurationError
from cni_contrail.runtime.versions import SUPPORTED

FUTURE = ("1.2.0", "2.0.0", "10.0.0")


def offering(**keys: Any) -> NetworkList:
    document = {"name": "net", "plugins": [{"type": "bridge"}], **keys}
    return parse_list(json.dumps(document).encode(), origin="x.conflist")


@pytest.mark.parametrize(
    ("stated", "offered", "taken"),
    [
        ("1.0.0", ["0.4.0", "1.0.0", "1.1.0"], "1.1.0"),
        ("1.0.0", ["1.1.0", "0.4.0"], "1.1.0"),
        ("1.1.0", ["0.4.0"], "1.1.0"),
        ("1.0.0", [], "1.0.0"),
        ("0.4.0", ["1.0.0", "1.2.0", "2.0.0"], "1.0.0"),
        ("2.0.0", ["1.1.0", "1.2.0"], "1.1.0"),
        ("", ["0.3.1"], "0.3.1"),
        ("0.4.0", ["0.10.0"], "0.4.0"),
    ],
)
def test_the_highest_supported_version_is_selected_in_any_order(stated: str, offered: list[str], taken: str) -> None:
    assert offering(cniVersion=stated, cniVersions=offered).version == taken


def test_cni_versions_suffices_without_cni_version() -> None:
    assert offering(cniVersions=["0.4.0", "1.0.0"]).version == "1.0.0"


@given(st.lists(st.sampled_from(SUPPORTED), min_size=1), st.lists(st.sampled_from(FUTURE)), st.randoms())
def test_unsupported_later_versions_are_ignored(known: list[str], later: list[str], random: Any) -> None:
    mixed = [*known, *later]
    random.shuffle(mixed)
    assert offering(cniVersion=mixed[0], cniVersions=mixed[1:]).version == max(known, key=SUPPORTED.index)


@pytest.mark.parametrize("offered", [[], ["1.2.0"], ["0.9.0"]])
def test_a_list_without_a_supported_version_is_rejected(offered: list[str]) -> None:
    with pytest.raises(
        NetworkConfigurationError, match=r"^x.conflist: key 'cniVersions': must contain one of 0.1.0, .*, 1.1.0$"
    ):
        offering(cniVersions=offered)


@pytest.mark.parametrize(
    ("offered", "key", "problem"),
    [
        ("1.0.0", "cniVersions", "must be a list, not '1.0.0'"),
        (None, "cniVersions", "must be a list, not None"),
        (["1.0.0", 1.1], "cniVersions[1]", "must be a version such as 1.0.0, not 1.1"),
        (["1.0"], "cniVersions[0]", "must be a version such as 1.0.0, not '1.0'"),
        (["v1.0.0"], "cniVersions[0]", "not 'v1.0.0'"),
        (["1.0.0\n"], "cniVersions[0]", r"not '1.0.0\n'"),
    ],
)
def test_a_malformed_version_is_rejected(offered: Any, key: str, problem: str) -> None:
    with pytest.raises(NetworkConfigurationError) as caught:
        offering(cniVersion="1.0.0", cniVersions=offered)
    assert str(caught.value).startswith(f"x.conflist: key '{key}': ")
    assert problem in str(caught.value)


def test_a_single_configuration_has_one_version() -> None:
    document = {"cniVersion": "0.4.0", "cniVersions": ["1.0.0"], "name": "net", "type": "bridge"}
    network = parse_single(json.dumps(document).encode(), origin="x.conf")
    assert network.version == "0.4.0"
    assert network.plugins[0].document == document
