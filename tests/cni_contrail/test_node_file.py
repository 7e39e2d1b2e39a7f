"""The node-wide file: read again whenever it may have changed, and only then."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cni_contrail.errors import Code, PluginError
from cni_contrail.node_file import NODE_FILE_VARIABLE, read_node_file


class Reader:
    """Reads one file, and counts how often its content was looked at."""

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
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long after whatever a test writes."""
    now = time.time
    monkeypatch.setattr("cni_contrail.node_file.time.time", lambda: now() + 3600)


def test_one_that_is_not_there_says_nothing(read: Reader) -> None:
    assert read() == {}


@pytest.mark.usefixtures("later")
class TestOneThatWasWrittenLongAgo:
    def test_is_looked_at_once(self, read: Reader) -> None:
        read.path.write_text('{"mtu": 1400}')
        assert [read(), read(), read()] == [{"mtu": 1400}] * 3
        assert read.checked == 1

    def test_is_read_again_when_another_took_its_place(self, read: Reader) -> None:
        read.path.write_text('{"mtu": 1400}')
        read()
        new = read.path.with_suffix(".new")
        new.write_text('{"mtu": 1500}')
        before = read.path.stat()
        os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
        new.rename(read.path)
        assert read() == {"mtu": 1500}

    def test_is_gone_when_it_was_removed(self, read: Reader) -> None:
        read.path.write_text('{"mtu": 1400}')
        read()
        read.path.unlink()
        assert read() == {}

    def test_is_no_object_each_time(self, read: Reader) -> None:
        read.path.write_text("[]")
        for _ in range(2):
            with pytest.raises(PluginError) as caught:
                read()
            assert caught.value.code == Code.INVALID_CONFIG


def test_one_that_is_being_written_is_read_each_time(read: Reader) -> None:
    """Its times need not tell two changes of one moment apart."""
    for mtu in range(1400, 1420):
        read.path.write_text(f'{{"mtu": {mtu}}}')
        assert read() == {"mtu": mtu}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"mtu": 1400, "mode": "thick", "mtu": 1500}', "duplicate key mtu: 1400 and 1500"),
        ('{"mode": "thick", "mode": "thick"}', 'duplicate key mode: "thick" and "thick"'),
        ('{"mode": {"nad": null, "nad": []}}', "duplicate key nad: null and []"),
    ],
)
def test_one_that_says_a_thing_twice_is_refused(read: Reader, text: str, said: str) -> None:
    read.path.write_text(text)
    with pytest.raises(PluginError) as caught:
        read()
    assert caught.value.code == Code.INVALID_CONFIG
    assert caught.value.message == f"{read.path}: cannot be read: {said}"
