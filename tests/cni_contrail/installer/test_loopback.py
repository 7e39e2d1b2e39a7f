"""The plugin `loopback` is installed where none is, and one of the node is never touched."""

from pathlib import Path

import pytest

from cni_contrail.installer.loopback import Loopback


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def loopback(directory: Path) -> Loopback:
    return Loopback(str(directory), "")


def content(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_a_node_without_one_gets_it(loopback: Loopback, directory: Path) -> None:
    assert loopback.put(b"ours")
    assert not loopback.put(b"ours")
    assert content(directory) == {"loopback": b"ours", "contrail-loopback": b"ours"}
    assert loopback.put(b"ours of the next release")
    assert (directory / "loopback").read_bytes() == b"ours of the next release"
    assert loopback.remove()
    assert not loopback.remove()
    assert content(directory) == {}


def test_that_of_the_node_stays_as_it_is(loopback: Loopback, directory: Path) -> None:
    (directory / "loopback").write_bytes(b"theirs")
    assert not loopback.put(b"ours")
    assert not loopback.remove()
    assert content(directory) == {"loopback": b"theirs"}


def test_a_link_of_others_stays_even_if_it_leads_nowhere(loopback: Loopback, directory: Path) -> None:
    (directory / "loopback").symlink_to("/nowhere")
    assert not loopback.put(b"ours")
    assert not loopback.remove()
    assert str((directory / "loopback").readlink()) == "/nowhere"


def test_one_that_replaces_ours_stays(loopback: Loopback, directory: Path) -> None:
    loopback.put(b"ours")
    (directory / "new").write_bytes(b"theirs")
    (directory / "new").rename(directory / "loopback")
    assert not loopback.put(b"ours")
    assert loopback.remove()
    assert content(directory) == {"loopback": b"theirs"}


def test_one_that_another_installer_copies_over_ours_is_replaced_by_ours(loopback: Loopback, directory: Path) -> None:
    loopback.put(b"ours")
    (directory / "loopback").write_bytes(b"theirs, through the link")
    assert loopback.put(b"ours")
    assert content(directory) == {"loopback": b"ours", "contrail-loopback": b"ours"}


@pytest.mark.parametrize("removed", ["loopback", "contrail-loopback"])
def test_what_is_removed_of_ours_is_put_back(loopback: Loopback, directory: Path, removed: str) -> None:
    loopback.put(b"ours")
    (directory / removed).unlink()
    assert loopback.put(b"ours")
    assert content(directory) == {"loopback": b"ours", "contrail-loopback": b"ours"}
