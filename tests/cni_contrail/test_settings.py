"""Settings: their sources, their types, and what a tenant's network configuration must not change."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cni_contrail.errors import Code, PluginError
from cni_contrail.log import Log
from cni_contrail.node_file import NODE_FILE_VARIABLE
from cni_contrail.protocol.netconf import NetworkConfig, read_config
from cni_contrail.quoting import quoted
from cni_contrail.settings import Settings, load_settings, load_settings_for_removal

OTHER_VALUES: dict[str, Any] = {
    "mode": "thick",
    "network-name": "other",
    "cluster-name": "other",
    "agent-socket": "/other",
    "vrouter-ip": "192.0.2.1",
    "vrouter-port": 9999,
    "poll-timeout": 4,
    "poll-retries": 2,
    "config-dir": "/other",
    "state-dir": "/other",
    "sysctl-dir": "/other",
    "vif-type": "macvlan",
    "parent-interface": "other",
    "log-file": "/other",
    "log-level": "error",
    "meta-plugin": "other",
}
UPSTREAMS_FILE = {
    "cluster-name": "k8s",
    "meta-plugin": "multus",
    "mode": "k8s",
    "vif-type": "veth",
    "parent-interface": "eth0",
    "vrouter-ip": "127.0.0.1",
    "vrouter-port": 9091,
    "config-dir": "/var/lib/contrail/ports/vm",
    "poll-timeout": 5,
    "poll-retries": 15,
    "log-file": "/var/log/contrail/cni/opencontrail.log",
    "log-level": "4",
}


NETWORK = "net"


@pytest.fixture
def node_file(tmp_path: Path) -> Path:
    return tmp_path / "cni.json"


def load(node_file: Path, section: Any = None, **kwargs: Any) -> Settings:
    document = {} if section is None else {"contrail": section}
    config = NetworkConfig(name=NETWORK, version="1.0.0", document=document)
    return load_settings(config, {NODE_FILE_VARIABLE: str(node_file)}, {})


def refused(node_file: Path, section: Any) -> str:
    with pytest.raises(PluginError) as caught:
        load(node_file, section)
    assert caught.value.code == Code.INVALID_CONFIG
    return caught.value.message


def agent_timeout(settings: Settings) -> float:
    return settings.agent_timeout(is_thick=settings.is_thick(NETWORK))


class TestSources:
    def test_settings_default_without_a_source(self, node_file: Path) -> None:
        assert load(node_file) == Settings() == load(node_file, {})

    def test_the_network_configuration_overrides_the_defaults(self, node_file: Path) -> None:
        settings = load(node_file, OTHER_VALUES)
        for key, value in OTHER_VALUES.items():
            assert getattr(settings, key.replace("-", "_")) == value

    def test_the_node_wide_file_overrides_the_defaults(self, node_file: Path) -> None:
        node_file.write_text(json.dumps(OTHER_VALUES))
        assert load(node_file) == load(node_file, OTHER_VALUES)

    def test_upstreams_configuration_is_accepted(self, node_file: Path) -> None:
        settings = load(node_file, UPSTREAMS_FILE)
        assert agent_timeout(settings) == agent_timeout(Settings())  # theirs is longer
        assert (settings.mode, settings.log_level) == ("auto", "debug")

    def test_upstreams_log_levels_are_verbosities(self, node_file: Path) -> None:
        assert load(node_file, {"log-level": "0"}).log_level == "info"
        assert load(node_file, {"log-level": "debug"}).log_level == "debug"

    def test_a_network_configuration_cannot_choose_the_node_wide_file(self, node_file: Path) -> None:
        for key in ("node-file", "config", "CONTRAIL_CNI_CONFIG"):
            assert key in refused(node_file, {key: "/tmp/mine"})


class TestFixedByTheNode:
    @pytest.mark.parametrize("first", ["thick", "delegated"])
    def test_the_last_duplicate_key_counts_as_in_libcni(self, node_file: Path, first: str) -> None:
        node_file.write_text('{"mode": "thick"}')
        config = read_config(f'{{"name": "net", "contrail": {{"mode": "{first}", "mode": "delegated"}}}}'.encode())
        with pytest.raises(PluginError, match="mode") as caught:
            load_settings(config, {NODE_FILE_VARIABLE: str(node_file)}, {})
        assert caught.value.code == Code.INVALID_CONFIG

    @pytest.mark.parametrize("key", OTHER_VALUES)
    def test_a_key_set_by_the_node_must_not_be_changed(self, node_file: Path, key: str) -> None:
        # The number of retries has no default that a file could state.
        of_the_node = 4 if key == "poll-retries" else getattr(Settings(), key.replace("-", "_"))
        node_file.write_text(json.dumps({key: of_the_node}))
        message = refused(node_file, {key: OTHER_VALUES[key]})
        assert key in message
        assert json.dumps(OTHER_VALUES[key]) in message
        assert json.dumps(of_the_node) in message

    @pytest.mark.parametrize("key", OTHER_VALUES)
    def test_a_key_set_by_the_node_may_be_repeated(self, node_file: Path, key: str) -> None:
        node_file.write_text(json.dumps({key: OTHER_VALUES[key]}))
        assert load(node_file, {key: OTHER_VALUES[key]}) == load(node_file)

    def test_mtu_and_nad_may_be_changed(self, node_file: Path) -> None:
        node_file.write_text(json.dumps({"mtu": 1500, "nad": "a/b"}))
        settings = load(node_file, {"mtu": 9000, "nad": "demo/net-a"})
        assert (settings.mtu, settings.nad) == (9000, "demo/net-a")

    @pytest.mark.parametrize("word", ["auto", "k8s"])
    def test_mode_auto_leaves_the_mode_to_the_node(self, node_file: Path, word: str) -> None:
        node_file.write_text('{"mode": "delegated"}')
        assert load(node_file, {"mode": word}).mode == "delegated"

    def test_k8s_equals_auto(self, node_file: Path) -> None:
        node_file.write_text('{"mode": "k8s"}')
        assert load(node_file, {"mode": "auto"}).mode == "auto"


class TestAgentTimeout:
    """How long ADD waits for the agent, and what a network configuration may choose."""

    def test_it_is_short_unless_a_meta_plugin_calls(self, node_file: Path) -> None:
        """kubelet deletes no pod while its ADD waits."""
        assert load(node_file).agent_timeout(is_thick=True) == 8
        assert load(node_file).agent_timeout(is_thick=False) == 60

    def test_poll_retries_set_it_in_both_modes(self, node_file: Path) -> None:
        node_file.write_text('{"poll-timeout": 2, "poll-retries": 15}')
        assert {load(node_file).agent_timeout(is_thick=is_thick) for is_thick in (True, False)} == {30}

    @pytest.mark.parametrize(
        ("node", "own"),
        [
            ({}, {"poll-timeout": 3600, "poll-retries": 10000}),
            ({}, {"poll-retries": 10000}),
            ({"poll-timeout": 2}, {"poll-retries": 10000}),
            ({"poll-retries": 4}, {"poll-timeout": 3600}),
            ({"poll-retries": 3}, {"poll-timeout": 3.7}),
        ],
    )
    def test_it_never_exceeds_that_of_the_node(self, node_file: Path, node: Any, own: Any) -> None:
        node_file.write_text(json.dumps(node))
        assert 0 < agent_timeout(load(node_file, own)) <= agent_timeout(load(node_file))

    @pytest.mark.parametrize(
        ("node", "own"),
        [({"poll-timeout": 5}, {"poll-retries": 10000}), ({"poll-retries": 12}, {"poll-timeout": 60})],
    )
    def test_a_longer_one_is_shortened_to_that_of_the_node(self, node_file: Path, node: Any, own: Any) -> None:
        node_file.write_text(json.dumps(node))
        shortened = load(node_file, own)
        assert agent_timeout(shortened) == pytest.approx(agent_timeout(load(node_file)))
        assert shortened.poll_timeout <= agent_timeout(shortened)

    @pytest.mark.parametrize(("mode", "seconds"), [("thick", 8), ("delegated", 60)])
    def test_a_longer_one_is_shortened_to_that_of_the_mode(self, node_file: Path, mode: str, seconds: int) -> None:
        own = {"mode": mode, "poll-timeout": 5, "poll-retries": 15}
        assert agent_timeout(load(node_file, own)) == pytest.approx(seconds)

    @pytest.mark.parametrize("mode", ["thick", "delegated"])
    @pytest.mark.parametrize("retries", [{}, {"poll-retries": 2000}, {"poll-retries": 10000}])
    def test_requests_are_not_more_frequent_than_those_of_the_node(
        self, node_file: Path, mode: str, retries: Any
    ) -> None:
        settings = load(node_file, {"mode": mode, "poll-timeout": 0.005, **retries})
        assert settings.poll_timeout >= Settings().poll_timeout
        expected = agent_timeout(Settings(mode=mode))
        if retries:
            expected = min(expected, 0.005 * retries["poll-retries"])
        assert agent_timeout(settings) == pytest.approx(expected)

    def test_the_pause_of_a_shorter_one_is_all_of_it(self, node_file: Path) -> None:
        settings = load(node_file, {"poll-timeout": 0.005, "poll-retries": 100})
        assert (settings.poll_timeout, settings.poll_retries) == (0.5, 1)

    def test_it_may_be_shorter(self, node_file: Path) -> None:
        assert agent_timeout(load(node_file, {"poll-timeout": 0.5, "poll-retries": 4})) == 2


class TestModes:
    @pytest.mark.parametrize(
        ("mode", "network", "thick"),
        [
            ("auto", "contrail-k8s-cni", True),
            ("auto", "net-a", False),
            ("thick", "net-a", True),
            ("delegated", "contrail-k8s-cni", False),
        ],
    )
    def test_mode_and_network_name_decide_whether_a_call_is_thick(self, mode: str, network: str, thick: bool) -> None:
        assert Settings(mode=mode).is_thick(network) is thick


class TestWrongValues:
    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("mode", "both"),
            ("mode", 5),
            ("network-name", ""),
            ("network-name", "a b"),
            ("nad", "net-a"),
            ("nad", "a/b/c"),
            ("cluster-name", "../x"),
            ("agent-socket", "relative.sock"),
            ("agent-socket", 5),
            ("vrouter-ip", ""),
            ("vrouter-ip", "a b"),
            ("vrouter-ip", 127),
            ("vrouter-port", "9091"),
            ("vrouter-port", 0),
            ("vrouter-port", 65536),
            ("vrouter-port", True),
            ("vrouter-port", 90.5),
            ("poll-timeout", 0),
            ("poll-timeout", -1),
            ("poll-timeout", "3"),
            ("poll-timeout", True),
            ("poll-retries", 0),
            ("poll-retries", 2.5),
            ("config-dir", ""),
            ("state-dir", "relative"),
            ("state-dir", "/a\0b"),
            ("sysctl-dir", None),
            ("vif-type", "ipvlan"),
            ("parent-interface", ""),
            ("parent-interface", "eth0/1"),
            ("parent-interface", "x" * 16),
            ("mtu", 67),
            ("mtu", "1500"),
            ("mtu", 65536),
            ("log-file", "relative"),
            ("log-file", "/tmp/\ud800"),
            ("agent-socket", "/run/\udcff.sock"),
            ("meta-plugin", "\udc00"),
            ("log-file", "/" + "x" * 200),
            ("log-level", "loud"),
            ("log-level", 4),
        ],
    )
    def test_an_error_names_key_and_value(self, node_file: Path, key: str, value: Any) -> None:
        message = refused(node_file, {key: value})
        assert key in message
        assert quoted(value) in message
        node_file.write_text(json.dumps({key: value}))
        assert str(node_file) in refused(node_file, {})

    def test_an_error_names_an_unknown_key_with_its_value(self, node_file: Path) -> None:
        message = refused(node_file, {"pol-timeout": 5})
        assert "pol-timeout" in message
        assert "5" in message

    @pytest.mark.parametrize("section", ["x", [], 5, True])
    def test_a_section_that_is_no_object_is_rejected(self, node_file: Path, section: Any) -> None:
        assert "contrail" in refused(node_file, section)

    def test_a_null_section_is_empty(self, node_file: Path) -> None:
        config = NetworkConfig("net", "1.0.0", {"contrail": None})
        assert load_settings(config, {NODE_FILE_VARIABLE: str(node_file)}, {}) == Settings()

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"5"])
    def test_an_error_names_an_invalid_node_wide_file(self, node_file: Path, content: bytes) -> None:
        node_file.write_bytes(content)
        assert str(node_file) in refused(node_file, {})

    def test_an_error_names_an_unreadable_node_wide_file(self, tmp_path: Path) -> None:
        assert str(tmp_path) in refused(tmp_path, {})

    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
        max_leaves=3,
    )

    @given(st.sampled_from([*OTHER_VALUES, "mtu", "nad"]), values)
    def test_any_value_is_a_setting_or_one_error(self, key: str, value: Any) -> None:
        try:
            settings = load(Path("/nowhere"), {key: value})
        except PluginError as error:
            message = error.message
        else:
            message = f"{key} {settings}"
        assert key in message


class TestForRemoval:
    def test_a_rejected_section_is_replaced_by_the_nodes_settings(self, node_file: Path) -> None:
        node_file.write_text('{"state-dir": "/node"}')
        for section in ({"state-dir": "/tenant"}, {"unknown": 5}, "x"):
            config = NetworkConfig("net", "1.0.0", {"contrail": section})
            environment = {NODE_FILE_VARIABLE: str(node_file)}
            settings = load_settings_for_removal(config, environment, {}, Log(level="error"))
            assert settings == Settings(state_dir="/node")

    @pytest.mark.parametrize("section", [{}, {"unknown": 5}])
    def test_an_invalid_node_wide_file_fails_without_a_log_line(
        self, node_file: Path, section: Any, capfd: pytest.CaptureFixture[str]
    ) -> None:
        node_file.write_text("{")
        config = NetworkConfig("net", "1.0.0", {"contrail": section})
        with pytest.raises(PluginError, match=r"cni\.json: cannot be read"):
            load_settings_for_removal(config, {NODE_FILE_VARIABLE: str(node_file)}, {}, Log())
        assert capfd.readouterr().err == ""

    def test_the_error_of_the_section_is_logged(self, node_file: Path, capfd: pytest.CaptureFixture[str]) -> None:
        config = NetworkConfig("net", "1.0.0", {"contrail": {"unknown": 5}})
        load_settings_for_removal(config, {NODE_FILE_VARIABLE: str(node_file)}, {}, Log())
        assert "unknown key unknown with value 5; using the node's settings" in capfd.readouterr().err

    def test_a_valid_section_is_used(self, node_file: Path) -> None:
        config = NetworkConfig("net", "1.0.0", {"contrail": {"state-dir": "/tenant"}})
        environment = {NODE_FILE_VARIABLE: str(node_file)}
        assert load_settings_for_removal(config, environment, {}, Log()).state_dir == "/tenant"
