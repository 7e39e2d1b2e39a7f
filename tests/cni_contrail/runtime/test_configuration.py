"""Configurations are validated before anything is executed; errors name file and key."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cni_contrail.runtime.configuration import load_file, parse_list, parse_single
from cni_contrail.runtime.errors import NetworkConfigurationError
from cni_contrail.runtime.versions import SUPPORTED

GOOD: dict[str, Any] = {"cniVersion": "1.0.0", "name": "net", "plugins": [{"type": "bridge"}]}


def encode(document: Any) -> bytes:
    return json.dumps(document).encode()


def error_of(document: Any) -> str:
    with pytest.raises(NetworkConfigurationError) as caught:
        parse_list(encode(document), origin="10-net.conflist")
    return str(caught.value)


def test_a_list_is_parsed_with_the_declared_capabilities() -> None:
    bridge = {"type": "bridge", "capabilities": {"ips": True, "mac": False}, "bridge": "cni0"}
    network = parse_list(encode(GOOD | {"plugins": [bridge, {"type": "tuning"}]}), origin="x")
    assert (network.name, network.version, network.disable_check) == ("net", "1.0.0", False)
    assert [plugin.type for plugin in network.plugins] == ["bridge", "tuning"]
    assert network.plugins[0].capabilities == {"ips"}
    assert network.plugins[0].document == bridge


def test_the_source_is_kept_unchanged() -> None:
    text = json.dumps(GOOD, indent=7).encode()
    assert parse_list(text, origin="x").source == text


@pytest.mark.parametrize("stated", [{}, {"cniVersion": ""}])
def test_a_list_without_version_has_0_1_0(stated: dict[str, str]) -> None:
    document = {"name": "net", "plugins": [{"type": "bridge"}], **stated}
    assert parse_list(encode(document), origin="x").version == "0.1.0"


@pytest.mark.parametrize("version", SUPPORTED)
def test_every_supported_version_is_accepted(version: str) -> None:
    assert parse_list(encode(GOOD | {"cniVersion": version}), origin="x").version == version


@pytest.mark.parametrize(("written", "meant"), [(True, True), (False, False), ("True", True), ("false", False)])
def test_flags_are_parsed_as_in_libcni(written: Any, meant: bool) -> None:
    network = parse_list(encode(GOOD | {"disableCheck": written}), origin="x")
    assert (network.disable_check, network.disable_gc) == (meant, False)
    network = parse_list(encode(GOOD | {"disableGC": written}), origin="x")
    assert (network.disable_check, network.disable_gc) == (False, meant)


@pytest.mark.parametrize(
    ("change", "key", "problem"),
    [
        ({"name": ""}, "name", "non-empty"),
        ({"name": 5}, "name", "non-empty"),
        ({"name": "a/b"}, "name", "a letter or a digit, not 'a/b'"),
        ({"name": "-a"}, "name", "a letter or a digit, not '-a'"),
        ({"name": "a\n"}, "name", r"a letter or a digit, not 'a\n'"),
        ({"cniVersion": 1}, "cniVersion", "must be a string, not 1"),
        (
            {"cniVersion": "1.0"},
            "cniVersion",
            "1.0.0, 1.1.0, not '1.0'",
        ),
        (
            {"cniVersion": "1.2.0"},
            "cniVersion",
            "must be one of 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0",
        ),
        ({"loadOnlyInlinedPlugins": "no"}, "loadOnlyInlinedPlugins", "must be true or false, not 'no'"),
        ({"disableGC": None}, "disableGC", "must be true or false, not None"),
        ({"disableCheck": "maybe"}, "disableCheck", "must be true or false, not 'maybe'"),
        ({"disableCheck": 1}, "disableCheck", "must be true or false, not 1"),
        ({"plugins": []}, "plugins", "at least one object"),
        ({"plugins": {"type": "x"}}, "plugins", "must be a list"),
        ({"plugins": ["bridge"]}, "plugins[0]", "must be an object"),
        ({"plugins": [{"type": "a"}, {}]}, "plugins[1].type", "is missing"),
        ({"plugins": [{"type": None}]}, "plugins[0].type", "non-empty"),
        ({"plugins": [{"type": "../sh"}]}, "plugins[0].type", "without a path"),
        ({"plugins": [{"type": "a", "capabilities": []}]}, "plugins[0].capabilities", "must be an object"),
        ({"plugins": [{"type": "a", "capabilities": {"ips": "yes"}}]}, "plugins[0].capabilities.ips", "not 'yes'"),
    ],
)
def test_the_error_names_file_key_and_problem(change: dict[str, Any], key: str, problem: str) -> None:
    message = error_of(GOOD | change)
    assert message.startswith(f"10-net.conflist: key '{key}': ")
    assert problem in message


def test_a_missing_name_is_reported() -> None:
    assert error_of({"plugins": [{"type": "a"}]}) == "10-net.conflist: key 'name': is missing"


def test_missing_plugins_are_reported() -> None:
    assert error_of({"name": "net"}) == "10-net.conflist: key 'plugins': is missing"


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"[1", b"{} {}"])
def test_malformed_json_is_reported(text: bytes) -> None:
    with pytest.raises(NetworkConfigurationError, match=r"10-net\.conflist: is not JSON"):
        parse_list(text, origin="10-net.conflist")


@pytest.mark.parametrize("document", [None, [], "net", 1])
def test_json_that_is_no_object_is_reported(document: Any) -> None:
    assert error_of(document) == "10-net.conflist: must hold a JSON object"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_any_json_value_is_accepted_or_a_configuration_error(value: Any) -> None:
    for key in ("name", "cniVersion", "cniVersions", "disableGC", "loadOnlyInlinedPlugins", "plugins"):
        with contextlib.suppress(NetworkConfigurationError):
            parse_list(encode(GOOD | {key: value}), origin="x")


class TestSingleConfigurations:
    def test_a_single_configuration_becomes_a_list_of_one_plugin(self) -> None:
        document = {"cniVersion": "0.3.1", "name": "net", "type": "bridge", "capabilities": {"ips": True}}
        network = parse_single(encode(document), origin="x")
        assert (network.name, network.version) == ("net", "0.3.1")
        assert [plugin.document for plugin in network.plugins] == [document]
        assert json.loads(network.source) == {"name": "net", "cniVersion": "0.3.1", "plugins": [document]}

    def test_errors_name_the_keys_of_the_single_configuration(self) -> None:
        with pytest.raises(NetworkConfigurationError, match=r"^a.conf: key 'type': is missing$"):
            parse_single(encode({"name": "net"}), origin="a.conf")

    def test_a_list_in_a_single_configuration_is_rejected(self) -> None:
        with pytest.raises(NetworkConfigurationError, match=r"^a.conf: key 'plugins': .* belongs in a .conflist file$"):
            parse_single(encode(GOOD), origin="a.conf")


class TestFiles:
    @pytest.mark.parametrize("name", ["net.conf", "net.json"])
    def test_a_single_configuration_is_recognized_by_its_extension(self, tmp_path: Path, name: str) -> None:
        path = tmp_path / name
        path.write_bytes(encode({"name": "net", "type": "bridge"}))
        assert load_file(str(path)).plugins[0].type == "bridge"

    def test_a_list_is_recognized_by_its_extension(self, tmp_path: Path) -> None:
        path = tmp_path / "net.conflist"
        path.write_bytes(encode(GOOD))
        assert load_file(str(path)).name == "net"

    def test_a_missing_file_is_reported(self, tmp_path: Path) -> None:
        with pytest.raises(NetworkConfigurationError, match=r"none.conflist: cannot be read: No such file"):
            load_file(str(tmp_path / "none.conflist"))
