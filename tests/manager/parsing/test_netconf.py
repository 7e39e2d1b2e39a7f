"""`spec.config` names the plugin of a NAD; NADs of other plugins are counted but never served."""

import pytest

from manager.parsing.errors import NadError
from manager.parsing.nad import parse_nad
from manager.parsing.network_definition import ForeignDefinition, NetworkDefinition
from tests.manager.parsing.conftest import MakeNad

SUBNET = {"opencontrail.org/cidr": "10.1.1.0/24"}


@pytest.mark.parametrize(
    "config",
    [
        '{"type": "contrail-k8s-cni"}',
        '{"cniVersion": "0.3.1", "plugins": [{"type": "contrail-k8s-cni"}, {"type": "tuning"}]}',
        '{"plugins": [{"type": "tuning"}, {"type": "contrail-k8s-cni"}]}',
        '{"type": "contrail-k8s-cni", "plugins": null}',
    ],
)
def test_a_nad_is_served_if_spec_config_names_the_contrail_plugin(config: str, make_nad: MakeNad) -> None:
    definition = parse_nad(make_nad(SUBNET, config), default_mtu=1500)
    assert isinstance(definition, NetworkDefinition)
    assert definition.config_name == "net-a"


@pytest.mark.parametrize(
    ("config", "plugin"),
    [
        ('{"type": "bridge"}', "bridge"),
        ('{"plugins": [{"type": "macvlan"}, {"type": "tuning"}]}', "macvlan"),
        ('{"plugins": []}', ""),
    ],
)
def test_a_nad_of_another_plugin_is_foreign_whatever_its_annotations(
    config: str, plugin: str, make_nad: MakeNad
) -> None:
    nad = make_nad({"opencontrail.org/cidr": "nonsense"}, config)
    assert parse_nad(nad, default_mtu=1500) == ForeignDefinition(config_name="net-a", plugin=plugin)


@pytest.mark.parametrize("config", [None, "", " \n"])
def test_a_nad_without_spec_config_is_foreign(config: str | None, make_nad: MakeNad) -> None:
    assert parse_nad(make_nad(SUBNET, config), default_mtu=1500) == ForeignDefinition(config_name="net-a", plugin="")


@pytest.mark.parametrize("kind", ["contrail-k8s-cni", "bridge"])
def test_the_name_in_spec_config_is_kept(kind: str, make_nad: MakeNad) -> None:
    nad = make_nad(SUBNET, f'{{"name": "blue", "type": "{kind}"}}')
    assert parse_nad(nad, default_mtu=1500).config_name == "blue"


@pytest.mark.parametrize("name", ["null", '""'])
def test_an_empty_name_counts_as_absent(name: str, make_nad: MakeNad) -> None:
    nad = make_nad(SUBNET, f'{{"name": {name}, "type": "contrail-k8s-cni"}}')
    assert parse_nad(nad, default_mtu=1500).config_name == "net-a"


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("[]", "[] is not a JSON object"),
        ("{}", "{}: type None is not a plugin name"),
        ('{"type": 5}', "type 5 is not a plugin name"),
        ('{"plugins": {}}', "{} is not a JSON list"),
        ('{"plugins": ["x"]}', "'x' is not a JSON object"),
        ('{"plugins": [{"name": "x"}]}', "type None is not a plugin name"),
        ('{"type": "bridge", "name": 5}', "name 5 is not a string"),
        ('{"type": "contrail-k8s-cni", "name": "a:b"}', "name 'a:b' is not a valid network name"),
        ('{"type": "contrail-k8s-cni", "name": "../a"}', "name '../a' is not a valid network name"),
        ('{"type": "contrail-k8s-cni",}', "is not valid JSON: line 1, column "),
        ("type: contrail-k8s-cni", "is not valid JSON: line 1, column 1"),
    ],
)
def test_an_invalid_spec_config_is_rejected(config: str, reason: str, make_nad: MakeNad) -> None:
    with pytest.raises(NadError) as caught:
        parse_nad(make_nad(SUBNET, config), default_mtu=1500)
    assert str(caught.value).startswith("spec.config: ")
    assert reason in str(caught.value)


def test_typographic_quotes_are_reported_with_line_and_column(make_nad: MakeNad) -> None:
    with pytest.raises(NadError, match=r"“ \(U\+201C\) at line 2, column 2 is a typographic quote"):
        parse_nad(make_nad(SUBNET, '{\n “cniVersion”: “0.3.0”,\n "type": "contrail-k8s-cni"}'), default_mtu=1500)
