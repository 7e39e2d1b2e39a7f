"""Settings of Contrail's own plugin are found, translated and compared, and each that has no counterpart is named."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cni_contrail.installer import cli
from cni_contrail.installer.errors import InstallError
from cni_contrail.installer.upstream import check_take_over, find_upstream
from cni_contrail.runtime.configuration import parse_list
from cni_contrail.settings import Settings, read_section
from tests.cni_contrail.installer.conftest import network_list
from tests.cni_contrail.installer.upstream_node import upstream_document, upstream_text

DIRECTORY = "/etc/cni/net.d"
CONF = f"{DIRECTORY}/10-contrail.conf"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / "etc/cni/net.d"
    directory.mkdir(parents=True)
    return directory


def printed(directory: Path, capsys: pytest.CaptureFixture[str]) -> str:
    root = directory.parents[2]
    assert cli.main(["upstream-settings", f"--host={root}"]) == 0
    return capsys.readouterr().out


def refusal(directory: Path, ours: Settings, name: str = "contrail-k8s-cni") -> str:
    upstream = find_upstream(str(directory.parents[2]), DIRECTORY)
    assert upstream
    network = parse_list(network_list(name=name).encode(), origin="")
    try:
        check_take_over(upstream, network, ours)
    except InstallError as error:
        return str(error)
    return ""


def without(*keys: str) -> str:
    document = upstream_document()
    for key in keys:
        del document["contrail"][key]
    return json.dumps(document)


class TestPrinting:
    def test_all_settings_become_keys_of_the_daemon(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        section = {
            "cluster-name": "prod",
            "vrouter-ip": "10.10.10.2",
            "vrouter-port": 9095,
            "vif-type": "macvlan",
            "parent-interface": "bond0",
            "mtu": 1450,
            "config-dir": "/var/lib/contrail/other",
        }
        (directory / "10-contrail.conf").write_text(upstream_text(**section))
        text = printed(directory, capsys)
        values = yaml.safe_load(text)
        expected = {"network-name": "contrail-k8s-cni", "poll-timeout": 5, "poll-retries": 15, "agent-socket": ""}
        assert values == section | expected
        assert read_section(values, "cnid.yaml") == values
        assert text.splitlines()[0] == f"# {CONF}"

    def test_what_is_absent_has_the_default_of_contrails_plugin(
        self, directory: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        document = {"name": "contrail-k8s-cni", "type": "contrail-k8s-cni"}
        (directory / "10-contrail.conf").write_text(json.dumps(document))
        assert yaml.safe_load(printed(directory, capsys)) == {
            "network-name": "contrail-k8s-cni",
            "cluster-name": "k8s",
            "vrouter-ip": "127.0.0.1",
            "vrouter-port": 9091,
            "config-dir": "/var/lib/contrail/ports/vm",
            "vif-type": "veth",
            "parent-interface": "eth0",
            "mtu": 1500,
            "agent-socket": "",
        }

    @pytest.mark.parametrize(
        ("name", "document"),
        [
            ("10-tf-cni.conf", json.loads(without("mtu"))),
            ("10-contrail.conf", json.loads(without("cluster-name", "mtu", "meta-plugin")) | {"cniVersion": "0.2.0"}),
            ("11-opencontrail.conf", json.loads(without("mtu", "log-file", "log-level"))),
        ],
        ids=["operator of Tungsten Fabric", "before clusters had names", "other number"],
    )
    def test_what_several_installers_write_has_the_same_settings(
        self, directory: Path, capsys: pytest.CaptureFixture[str], name: str, document: dict[str, Any]
    ) -> None:
        (directory / name).write_text(json.dumps(document))
        expected = {"cluster-name": "k8s", "mtu": 1500, "poll-timeout": 5, "poll-retries": 15}
        assert yaml.safe_load(printed(directory, capsys)).items() >= expected.items()
        assert refusal(directory, Settings()) == ""

    def test_each_setting_without_counterpart_is_named_with_its_value(
        self, directory: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        document = upstream_document(**{"config-dir": "/data/ports", "mode": "k8s", "colour": {"a": "\n"}})
        (directory / "10-contrail.conf").write_text(json.dumps(document | {"dns": {"nameservers": ["10.0.0.1"]}}))
        notes = [line for line in printed(directory, capsys).splitlines() if line.startswith("# no counterpart: ")]
        assert [note.removeprefix("# no counterpart: ") for note in notes] == [
            'dns {"nameservers": ["10.0.0.1"]}: the upstream plugin ignores it',
            'meta-plugin "multus": not needed: the name of the network says how the plugin is called',
            'log-file "/var/log/contrail/cni/opencontrail.log": the daemon logs to the log of its container',
            'log-level "4": the upstream plugin ignores it',
            'mode "k8s": not needed',
            'colour {"a": "\\n"}: unknown',
            'config-dir "/data/ports": also needs a mount in the container cnid',
        ]

    def test_case_of_keys_and_null_count_as_in_contrails_plugin(
        self, directory: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        document = json.loads(without("cluster-name"))
        document["contrail"] |= {"Cluster-Name": "prod", "mtu": None}
        (directory / "10-contrail.conf").write_text(json.dumps(document))
        values = yaml.safe_load(printed(directory, capsys))
        assert (values["cluster-name"], values["mtu"]) == ("prod", 1500)

    def test_a_node_without_that_plugin_has_none(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (directory / "10-contrail.conflist").write_text(network_list())
        (directory / "05-other-contrail.conf").write_text('{"cniVersion": "0.3.1", "name": "x", "type": "bridge"}')
        (directory / "10-tf-cni.conf").mkdir()
        for root in (directory.parents[2], directory):
            assert cli.main(["upstream-settings", f"--host={root}"]) == 1
            assert capsys.readouterr().err == (
                "contrail-installer: /etc/cni/net.d: no configuration of Contrail's own plugin\n"
            )

    def test_the_first_file_counts_whose_name_contrails_plugin_knows(
        self, directory: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for name in ("20-contrail.conf", "10-tf-cni.conf", "05-contrail.conf.bak", "05-contrail.json"):
            (directory / name).write_text(upstream_text(**{"cluster-name": name[:2]}))
        assert yaml.safe_load(printed(directory, capsys))["cluster-name"] == "10"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not JSON: "),
        ('{"name": ', "is not JSON: "),
        ("[" * 100_000, "is not JSON: "),
        ("[]", "must hold a JSON object"),
        ('{"cniVersion": "0.3.1", "type": "contrail-k8s-cni"}', "key 'name': is missing"),
        ('{"cniVersion": "9", "name": "a", "type": "contrail-k8s-cni"}', "key 'cniVersion': must be one of "),
        ('{"name": "a", "type": "contrail-k8s-cni", "contrail": []}', "contrail must be an object, not []"),
        (upstream_text(mode="mesos"), "mode must be k8s, not mesos"),
        (upstream_text(**{"vrouter-port": "9091"}), 'vrouter-port must be a whole number from 1 to 65535, not "9091"'),
        (upstream_text(**{"vif-type": "ipvlan"}), 'vif-type must be one of veth, macvlan, not "ipvlan"'),
        (upstream_text(**{"config-dir": "ports"}), 'config-dir must be an absolute path, not "ports"'),
    ],
    ids=[
        *("empty", "cut", "deep", "list", "no name", "unknown version", "section is a list"),
        *("mesos", "port is a string", "unknown kind", "relative path"),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong(
    directory: Path, capsys: pytest.CaptureFixture[str], text: str, problem: str
) -> None:
    (directory / "10-contrail.conf").write_text(text)
    assert cli.main(["upstream-settings", f"--host={directory.parents[2]}"]) == 1
    assert capsys.readouterr().err.startswith(f"contrail-installer: {CONF}: {problem}")


class TestComparison:
    @pytest.mark.parametrize("ours", [Settings(), Settings(poll_timeout=1, poll_retries=2, log_level="debug")])
    def test_equal_settings_can_be_taken_over(self, directory: Path, ours: Settings) -> None:
        (directory / "10-contrail.conf").write_text(upstream_text())
        assert refusal(directory, ours) == ""

    @pytest.mark.parametrize(
        ("section", "ours", "difference"),
        [
            ({"cluster-name": "prod"}, {}, 'cluster-name is "prod" there and "k8s" here'),
            ({}, {"vrouter_ip": "192.0.2.1"}, 'vrouter-ip is "127.0.0.1" there and "192.0.2.1" here'),
            ({"vrouter-port": 9095}, {}, "vrouter-port is 9095 there and 9091 here"),
            ({"mtu": 9000}, {}, "mtu is 9000 there and 1500 here"),
            ({}, {"agent_socket": "/run/a"}, 'agent-socket is "" there and "/run/a" here'),
            ({}, {"network_name": "net"}, 'network-name is "contrail-k8s-cni" there and "net" here'),
            (
                {"config-dir": "/a/b"},
                {},
                'config-dir is "/a/b" there and "/var/lib/contrail/ports/vm" here',
            ),
            (
                {"vif-type": "macvlan", "parent-interface": "bond0"},
                {},
                'vif-type is "macvlan" there and "veth" here; parent-interface is "bond0" there and "eth0" here',
            ),
        ],
    )
    def test_each_difference_is_named_with_both_values(
        self, directory: Path, section: dict[str, Any], ours: dict[str, Any], difference: str
    ) -> None:
        (directory / "10-contrail.conf").write_text(upstream_text(**section))
        assert refusal(directory, Settings(**ours)) == f"{CONF}: not taken over: {difference}"

    def test_a_parent_interface_counts_only_in_nested_mode(self, directory: Path) -> None:
        (directory / "10-contrail.conf").write_text(upstream_text(**{"parent-interface": "bond0"}))
        assert refusal(directory, Settings()) == ""

    def test_the_list_has_the_name_of_the_network(self, directory: Path) -> None:
        (directory / "10-contrail.conf").write_text(upstream_text())
        assert refusal(directory, Settings(), name="other").endswith(
            'name is "contrail-k8s-cni" there and "other" here'
        )
