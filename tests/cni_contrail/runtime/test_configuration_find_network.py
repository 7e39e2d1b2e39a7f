"""`find_network` searches in libcni's order: lists first, then single configurations, each by file name."""

import json
from pathlib import Path
from typing import Any

import pytest

from cni_contrail.runtime.configuration import find_network
from cni_contrail.runtime.errors import NetworkConfigurationError


def write_list(path: Path, *, name: str, kind: str) -> None:
    path.write_text(json.dumps({"cniVersion": "1.0.0", "name": name, "plugins": [{"type": kind}]}))


def write_single(path: Path, *, name: str, kind: str, **keys: Any) -> None:
    path.write_text(json.dumps({"cniVersion": "0.3.1", "name": name, "type": kind, **keys}))


def found(directory: Path, name: str) -> str:
    return find_network(str(directory), name).plugins[0].type


def test_the_first_list_by_file_name_is_found(tmp_path: Path) -> None:
    write_list(tmp_path / "20.conflist", name="net", kind="second")
    write_list(tmp_path / "10.conflist", name="net", kind="first")
    write_list(tmp_path / "00.conflist", name="other", kind="other")
    assert found(tmp_path, "net") == "first"


def test_a_list_comes_before_a_single_configuration(tmp_path: Path) -> None:
    write_single(tmp_path / "00.conf", name="net", kind="single")
    write_list(tmp_path / "99.conflist", name="net", kind="list")
    assert found(tmp_path, "net") == "list"


def test_conf_and_json_are_sorted_together(tmp_path: Path) -> None:
    write_single(tmp_path / "20.conf", name="net", kind="conf")
    write_single(tmp_path / "10.json", name="net", kind="json")
    assert found(tmp_path, "net") == "json"


def test_other_files_and_directories_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "00.conflist").mkdir()
    (tmp_path / "01.conflist.bak").write_text("{")
    (tmp_path / ".10.conflist.tmp").write_text("{")
    write_list(tmp_path / "10.conflist", name="net", kind="bridge")
    assert found(tmp_path, "net") == "bridge"


def test_an_unknown_name_is_reported(tmp_path: Path) -> None:
    write_list(tmp_path / "10.conflist", name="net", kind="bridge")
    with pytest.raises(NetworkConfigurationError, match=r"network 'web': not found in "):
        find_network(str(tmp_path), "web")


def test_a_missing_directory_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NetworkConfigurationError, match=r"none: cannot be read: No such file"):
        find_network(str(tmp_path / "none"), "net")


def test_an_invalid_file_before_the_network_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "05.conflist").write_text("{")
    write_list(tmp_path / "10.conflist", name="net", kind="bridge")
    with pytest.raises(NetworkConfigurationError, match=r"05.conflist: is not JSON"):
        find_network(str(tmp_path), "net")


def test_an_invalid_file_after_the_network_is_not_read(tmp_path: Path) -> None:
    write_list(tmp_path / "05.conflist", name="net", kind="bridge")
    (tmp_path / "10.conflist").write_text("{")
    assert found(tmp_path, "net") == "bridge"
