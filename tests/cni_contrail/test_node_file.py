"""The node-wide file is read again only if it may have changed."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cni_contrail.errors import Code, PluginError
from cni_contrail.node_file import NODE_FILE_VARIABLE, read_node_file


class Reader:
    """Reads one file, and counts how often its content is checked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checked = 0

    def __call__(self) -> Mapping[str, Any]:
        return read_node_file({NODE_FILE_VARIABLE: str(self.path)}, self._check)

    def _check(self, document: Mapping[str, Any], path: str) -> Mapping[str, Any]:
        assert path == str(self.path)
        self.checked += 1
        return document


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    return Reader(tmp_path / "cni.json")


@pytest.fixture
def an_hour_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Moves the clock long after the writes of a test."""
    now = time.time
    monkeypatch.setattr("cni_contrail.node_file.time.time", lambda: now() + 3600)


def test_a_missing_file_is_empty(read: Reader) -> None:
    assert read() == {}


@pytest.mark.usefixtures("an_hour_later")
class TestOldFile:
    def test_an_old_file_is_read_once(self, read: Reader) -> None:
        read.path.write_text('{"mtu": 1400}')
        assert [read(), read(), read()] == [{"mtu": 1400}] * 3
        assert read.checked == 1

    def test_a_replaced_file_is_read_again(self, read: Reader) -> None:
        read.path.write_text('{"mtu": 1400}')
        read()
        new = read.path.with_suffix(".new")
        new.write_text('{"mtu": 1500}')
        before = read.path.stat()
        os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
        new.rename(read.path)
        assert read() == {"mtu": 1500}

    def test_a_removed_file_is_empty(self, read: Reader) -> None:
        read.path.write_text('{"mtu": 1400}')
        read()
        read.path.unlink()
        assert read() == {}

    def test_an_invalid_file_is_an_error_each_time(self, read: Reader) -> None:
        read.path.write_text("[]")
        for _ in range(2):
            with pytest.raises(PluginError) as caught:
                read()
            assert caught.value.code == Code.INVALID_CONFIG


def test_a_recently_changed_file_is_not_cached(read: Reader) -> None:
    """Its times may not distinguish two changes within one clock tick."""
    for mtu in range(1400, 1420):
        read.path.write_text(f'{{"mtu": {mtu}}}')
        assert read() == {"mtu": mtu}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"mtu": 1400, "mode": "thick", "mtu": 1500}', "duplicate key mtu: 1400 and 1500"),
        ('{"mode": "thick", "mode": "thick"}', 'duplicate key mode: "thick" and "thick"'),
        ('{"mode": {"nad": null, "nad": []}}', "duplicate key nad: null and []"),
    ],
)
def test_a_duplicate_key_is_rejected(read: Reader, text: str, message: str) -> None:
    read.path.write_text(text)
    with pytest.raises(PluginError) as caught:
        read()
    assert caught.value.code == Code.INVALID_CONFIG
    assert caught.value.message == f"{read.path}: cannot be read: {message}"
