"""Files `<network name>/*.conf` beside a list add plugins to its chain (CNI specification 1.1.0, section 1)."""

import json
from pathlib import Path
from typing import Any

import pytest

from cni_contrail.runtime.configuration import find_network, load_file
from cni_contrail.runtime.errors import NetworkConfigurationError


@pytest.fixture
def confs(tmp_path: Path) -> Path:
    """A configuration directory with two further plugins of the network `net`."""
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "20-tuning.conf").write_text('{"type": "tuning", "capabilities": {"mac": true}}')
    (tmp_path / "net" / "10-portmap.conf").write_text('{"type": "portmap", "snat": true}')
    return tmp_path


def write_list(confs: Path, name: str = "net", **keys: Any) -> str:
    path = confs / f"10-{name}.conflist"
    path.write_text(json.dumps({"cniVersion": "1.1.0", "name": name, **keys}))
    return str(path)


def plugins_of(path: str) -> list[str]:
    return [plugin.type for plugin in load_file(path).plugins]


BRIDGE = [{"type": "bridge"}]


def test_they_follow_the_plugins_of_the_list_by_file_name(confs: Path) -> None:
    assert plugins_of(write_list(confs, plugins=BRIDGE)) == ["bridge", "portmap", "tuning"]


def test_they_are_validated_like_those_of_the_list(confs: Path) -> None:
    portmap, tuning = load_file(write_list(confs)).plugins
    assert portmap.document == {"type": "portmap", "snat": True}
    assert tuning.capabilities == {"mac"}


def test_a_list_may_have_no_plugins_of_its_own(confs: Path) -> None:
    assert plugins_of(write_list(confs)) == ["portmap", "tuning"]


def test_a_list_may_disable_them(confs: Path) -> None:
    assert plugins_of(write_list(confs, plugins=BRIDGE, loadOnlyInlinedPlugins=True)) == ["bridge"]


def test_a_list_without_any_plugin_is_rejected(confs: Path) -> None:
    for keys in ({"loadOnlyInlinedPlugins": True}, {"name": "other"}):
        with pytest.raises(NetworkConfigurationError, match=r"conflist: key 'plugins': is missing$"):
            load_file(write_list(confs, **keys))


def test_other_files_and_other_networks_are_ignored(confs: Path) -> None:
    (confs / "net" / "30-more.json").write_text("{")
    (confs / "net" / "40-more.conflist").write_text("{")
    (confs / "net" / "50-more.conf").mkdir()
    assert plugins_of(write_list(confs)) == ["portmap", "tuning"]
    assert plugins_of(write_list(confs, "other", plugins=BRIDGE)) == ["bridge"]


def test_a_file_with_the_directorys_name_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "net").write_text("")
    assert plugins_of(write_list(tmp_path, plugins=BRIDGE)) == ["bridge"]


def test_a_name_cannot_escape_the_directory(confs: Path) -> None:
    (confs / "inner").mkdir()
    path = confs / "inner" / "10-net.conflist"
    path.write_text(json.dumps({"name": "../net", "plugins": BRIDGE}))
    with pytest.raises(NetworkConfigurationError, match=r"key 'name': must be letters.*, not '../net'$"):
        load_file(str(path))


@pytest.mark.parametrize(("text", "message"), [("{", "is not JSON"), ("{}", "key 'type': is missing")])
def test_an_invalid_one_is_reported_with_its_path(confs: Path, text: str, message: str) -> None:
    broken = confs / "net" / "30-broken.conf"
    broken.write_text(text)
    with pytest.raises(NetworkConfigurationError, match=rf"^{broken}: {message}"):
        load_file(write_list(confs))


def test_find_network_loads_them(confs: Path) -> None:
    write_list(confs, plugins=BRIDGE)
    assert [plugin.type for plugin in find_network(str(confs), "net").plugins] == ["bridge", "portmap", "tuning"]


def test_the_source_is_only_the_list(confs: Path) -> None:
    path = write_list(confs, plugins=BRIDGE)
    assert load_file(path).source == Path(path).read_bytes()
