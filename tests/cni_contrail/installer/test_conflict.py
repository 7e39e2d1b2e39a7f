"""A network configuration that sorts before ours is a conflict, unless it is that of Multus."""

import json
import os
from pathlib import Path

import pytest

from cni_contrail.installer.conflict import find_conflict
from tests.cni_contrail.installer.conftest import network_list

OWN = "10-contrail.conflist"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "net.d").mkdir()
    (tmp_path / "net.d" / OWN).write_text(network_list())
    return tmp_path / "net.d"


def conflict(directory: Path) -> str:
    return find_conflict(str(directory.parent), "/net.d", OWN)


@pytest.mark.parametrize("name", ["05-other.conflist", "10-contrail-old.conflist"])
def test_a_list_that_sorts_first_is_named_with_its_network(directory: Path, name: str) -> None:
    (directory / name).write_text(network_list("bridge", "bridges"))
    assert conflict(directory) == f"/net.d/{name}: sorts before {OWN}, so runtimes use its network bridges for new pods"


def test_a_single_configuration_counts_such_as_that_of_contrails_own_plugin(directory: Path) -> None:
    (directory / "10-contrail.conf").write_text(
        '{"cniVersion": "0.3.1", "name": "contrail-k8s-cni", "type": "contrail-k8s-cni"}'
    )
    assert conflict(directory).startswith("/net.d/10-contrail.conf: sorts before 10-contrail.conflist")


def test_the_first_of_several_is_named(directory: Path) -> None:
    for name in ("07-b.conflist", "05-a.conflist"):
        (directory / name).write_text(network_list("bridge"))
    assert conflict(directory).startswith("/net.d/05-a.conflist: ")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"name": "x"'])
def test_an_invalid_one_is_a_conflict_too(directory: Path, text: str) -> None:
    (directory / "05-broken.conflist").write_text(text)
    assert conflict(directory).startswith(
        f"/net.d/05-broken.conflist: sorts before {OWN}, so runtimes use it for new pods; it is invalid: "
    )


@pytest.mark.parametrize("kind", ["multus", "multus-shim"])
def test_multus_comes_first_and_calls_the_next_one(directory: Path, kind: str) -> None:
    multus = {"cniVersion": "0.3.1", "name": "multus-cni-network", "type": kind}
    (directory / "00-multus.conf").write_text(json.dumps(multus))
    assert conflict(directory) == ""
    (directory / "05-other.conflist").write_text(network_list("bridge"))
    assert conflict(directory).startswith("/net.d/05-other.conflist: ")


@pytest.mark.parametrize("name", ["05-other.conflist.bak", "05-other", "20-other.conflist", "99-loopback.conf"])
def test_other_files_are_none(directory: Path, name: str) -> None:
    (directory / name).write_text(network_list("bridge"))
    assert conflict(directory) == ""


def test_one_that_is_removed_meanwhile_is_none(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "listdir", lambda _: [OWN, "05-gone.conflist"])
    assert conflict(directory) == ""


def test_directories_are_none(directory: Path) -> None:
    (directory / "05-folder.conf").mkdir()
    assert conflict(directory) == ""
