"""State between calls: records, their files and the lock of a container."""

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cni_contrail.errors import Code, DamagedRecordError, PluginError, TryAgainError
from cni_contrail.link.plan import Address, DefaultRoute, InterfacePlan, ReplacedRoute, Route
from cni_contrail.log import Log
from cni_contrail.state.attachments import Attachments
from cni_contrail.state.files import file_name, write_atomically
from cni_contrail.state.lock import LockedDirectory
from cni_contrail.state.records import AttachedInterface, Record, decode_record, encode_record

text = st.text(max_size=8)
plans = st.builds(
    InterfacePlan,
    name=text,
    host_name=text,
    alias=text,
    mac=text,
    mtu=st.integers(),
    addresses=st.lists(st.builds(Address, text, st.integers(), st.integers()), max_size=2).map(tuple),
    routes=st.lists(st.builds(Route, text, st.none() | text), max_size=2).map(tuple),
    defaults=st.lists(st.builds(DefaultRoute, text, st.booleans()), max_size=2).map(tuple),
)
records = st.builds(
    Record,
    container_id=text,
    ifname=text,
    attempt=st.binary(min_size=8, max_size=8).map(bytes.hex),
    netns=text,
    thick=st.booleans(),
    vrouter_agent=st.booleans(),
    vm_uuid=text,
    vm_name=text,
    interfaces=st.lists(st.builds(AttachedInterface, text, st.integers(), plans), max_size=2).map(tuple),
    replaced=st.lists(
        st.builds(ReplacedRoute, st.integers(), st.none() | text, text, st.integers(), st.booleans()), max_size=2
    ).map(tuple),
    finished=st.booleans(),
    network=text,
    host_netns=text,
    sandbox_netns=text,
)


def record(container: str = "c1", ifname: str = "eth0", vm_uuid: str = "m1") -> Record:
    return Record(container, ifname, "a1a1a1a1a1a1a1a1", "/n", thick=True, vm_uuid=vm_uuid)


@pytest.fixture
def attachments(tmp_path: Path) -> Attachments:
    return Attachments(str(tmp_path / "state"), Log(str(tmp_path / "log")))


class TestRecords:
    @given(records)
    def test_a_record_is_decoded_as_it_was_encoded(self, written: Record) -> None:
        assert decode_record(encode_record(written)) == written

    @given(records, st.data())
    def test_a_truncated_record_is_damaged(self, written: Record, data: st.DataObject) -> None:
        content = encode_record(written)
        cut = content[: data.draw(st.integers(0, len(content) - 1))]
        with pytest.raises(ValueError, match="not a record"):
            decode_record(cut)

    @given(st.binary() | st.text().map(str.encode))
    def test_anything_else_is_damaged(self, content: bytes) -> None:
        with pytest.raises(ValueError, match="not a record"):
            decode_record(content)

    @given(records, st.sampled_from(["version", "ifname", "interfaces", "replaced", "machine"]))
    def test_a_record_without_one_of_its_keys_is_damaged(self, written: Record, key: str) -> None:
        content = encode_record(written).replace(f'"{key}":'.encode(), f'"{key}-gone":'.encode(), 1)
        with pytest.raises(ValueError, match="not a record"):
            decode_record(content)

    @given(records, st.data())
    def test_a_record_with_a_value_of_another_type_is_damaged(self, written: Record, data: st.DataObject) -> None:
        document = json.loads(encode_record(written))
        holder, key = data.draw(st.sampled_from(list(_places(document))))
        other: list[Any] = [7, "x", [5], {"a": 5}, True]
        holder[key] = data.draw(st.sampled_from([value for value in other if not isinstance(value, type(holder[key]))]))
        if isinstance(holder[key], bool) or key == "gateway":  # a bool is an int; no gateway may become some
            return
        with pytest.raises(ValueError, match="not a record"):
            decode_record(json.dumps(document).encode())

    @pytest.mark.parametrize("attempt", ["", "x", "-5", "a" * 15, "a" * 17, "A" * 16, "aa bb cc dd ee f"])
    def test_a_record_with_an_invalid_attempt_is_damaged(self, attempt: str) -> None:
        with pytest.raises(ValueError, match="not a record"):
            decode_record(encode_record(record()._replace(attempt=attempt)))

    @given(records, st.integers().filter(lambda version: version != 2) | st.none() | st.text())
    def test_a_record_of_an_unknown_version_is_rejected(self, written: Record, version: object) -> None:
        document = {**json.loads(encode_record(written)), "version": version}
        with pytest.raises(ValueError, match=r"(?s)^not a record: unsupported version .*, expected 2$"):
            decode_record(json.dumps(document).encode())

    @given(records, st.sampled_from([7, "x", None, [5], {"a": 5}]))
    def test_fields_of_a_newer_release_are_ignored(self, written: Record, value: object) -> None:
        document = json.loads(encode_record(written))
        for each in list(_objects(document)):
            each["added-later"] = each["added_later"] = value
        assert decode_record(json.dumps(document).encode()) == written


def _objects(document: Any) -> Iterator[dict[str, Any]]:
    """Every object in a record, itself included."""
    if isinstance(document, dict):
        yield document
    for value in document.values() if isinstance(document, dict) else document:
        if isinstance(value, dict | list):
            yield from _objects(value)


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every value of a record with its container, except the version."""
    pairs = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in pairs:
        if key != "version":
            yield document, key
        if isinstance(value, dict | list):
            yield from _places(value)


class TestFiles:
    def test_only_root_can_read_them(self, attachments: Attachments) -> None:
        old = os.umask(0)
        try:
            attachments.write(record())
        finally:
            os.umask(old)
        for folder, _, names in os.walk(attachments.state_dir):
            assert os.stat(folder).st_mode & 0o777 == 0o700
            for name in names:
                assert os.stat(os.path.join(folder, name)).st_mode & 0o777 == 0o600

    def test_a_file_is_replaced_atomically_and_leaves_no_partial_file(self, tmp_path: Path) -> None:
        path = tmp_path / "a" / "b"
        for content in (b"first", b"second", b""):
            write_atomically(str(path), content)
            assert path.read_bytes() == content
        assert [each.name for each in path.parent.iterdir()] == ["b"]

    def test_a_failed_write_names_the_file_and_keeps_the_old_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "file"
        path.write_bytes(b"old")
        monkeypatch.setattr(os, "rename", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(PluginError, match="No space left on device") as caught:
            write_atomically(str(path), b"new")
        assert caught.value.code == Code.IO_FAILURE
        assert str(path) in caught.value.message
        assert path.read_bytes() == b"old"
        assert [each.name for each in tmp_path.iterdir()] == ["file"]

    @given(st.integers(1, 1000))
    def test_every_container_id_has_a_file_name(self, length: int) -> None:
        name = file_name("a" * length)
        assert len(name) <= 200
        assert (name == "a" * length) == (length <= 128 or length == 193)
        assert file_name(name) == name

    def test_long_container_ids_have_distinct_file_names(self, attachments: Attachments) -> None:
        long = ["c" * 300 + "1", "c" * 300 + "2"]
        for container in long:
            attachments.write(record(container))
        assert [attachments.of_container(container)[0].container_id for container in long] == long
        named = attachments.containers()
        assert sorted(attachments.of_container(name)[0].container_id for name in named) == long


class TestAttachments:
    def test_records_are_found_by_container_and_interface(self, attachments: Attachments) -> None:
        for container, ifname in (("c1", "eth0"), ("c1", ".x"), ("c2", "eth0"), ("c1.json", "a.json")):
            attachments.write(record(container, ifname))
        assert attachments.read("c1", "eth0") == record("c1", "eth0")
        assert attachments.read("c1", "eth1") is None
        assert attachments.read("c3", "eth0") is None
        assert {each.ifname for each in attachments.of_container("c1")} == {"eth0", ".x"}
        assert attachments.of_container("c3") == []

    def test_a_damaged_one_is_an_error_until_it_is_quarantined(self, attachments: Attachments) -> None:
        folder = Path(attachments.state_dir)
        attachments.write(record("c1"))
        attachments.write(record("c1", "net1"))
        (folder / "c1" / "eth0.json").write_bytes(b"")
        for read in (lambda: attachments.read("c1", "eth0"), lambda: attachments.of_container("c1")):
            with pytest.raises(DamagedRecordError, match=r"c1/eth0\.json is damaged") as caught:
                read()
        attachments.quarantine(caught.value, "c1", "eth0")
        assert attachments.of_container("c1") == [record("c1", "net1")]
        assert [path.name for path in (folder / ".damaged").iterdir()] == ["c1.eth0.json"]
        assert attachments.containers() == ["c1"]

    def test_a_damaged_one_that_cannot_be_moved_is_removed(self, attachments: Attachments) -> None:
        folder = Path(attachments.state_dir)
        attachments.write(record("c1"))
        (folder / ".damaged").write_bytes(b"")
        attachments.quarantine(DamagedRecordError("x", "y"), "c1", "eth0")
        assert attachments.read("c1", "eth0") is None

    def test_partial_files_of_a_killed_call_are_removed_by_the_next(self, attachments: Attachments) -> None:
        folder = Path(attachments.state_dir) / "c1"
        folder.mkdir(parents=True)
        (folder / "eth0.json.part").write_bytes(b"{")
        with attachments.lock("c1", 1):
            assert attachments.read("c1", "eth0") is None
        assert not folder.exists()

    def test_a_record_is_held_until_it_is_changed_replaced_or_removed(self, attachments: Attachments) -> None:
        assert not attachments.holds(record())
        attachments.write(record())
        assert attachments.holds(record())
        for change in (record()._replace(finished=not record().finished), record()._replace(attempt="f" * 16)):
            attachments.write(change)
            assert not attachments.holds(record())
        attachments.write(record())
        attachments.remove(record())
        assert not attachments.holds(record())

    def test_removal_is_idempotent(self, attachments: Attachments) -> None:
        attachments.write(record())
        attachments.remove(record())
        attachments.remove(record())
        assert attachments.read("c1", "eth0") is None


class TestLock:
    def test_only_one_call_holds_it(self, tmp_path: Path) -> None:
        path = str(tmp_path / "c1")
        with LockedDirectory(path, 1):
            with pytest.raises(TryAgainError, match=path), LockedDirectory(path, 0.1):
                pass
            with LockedDirectory(str(tmp_path / "c2"), 0.1):
                pass
        with LockedDirectory(path, 0.1):
            pass

    def test_an_empty_directory_is_removed(self, tmp_path: Path) -> None:
        path = tmp_path / "c1"
        with LockedDirectory(str(path), 1):
            (path / "x").touch()
        assert path.exists()
        with LockedDirectory(str(path), 1):
            (path / "x").unlink()
        assert not path.exists()

    def test_a_missing_directory_is_created_with_its_parents(self, tmp_path: Path) -> None:
        path = tmp_path / "made" / "c1"
        with LockedDirectory(str(path), 1):
            assert path.is_dir()

    def test_partial_files_of_killed_calls_are_removed_and_others_kept(self, tmp_path: Path) -> None:
        for name in ("a.json", "a.json.part", "b.part"):
            (tmp_path / name).touch()
        with LockedDirectory(str(tmp_path), 1):
            assert os.listdir(tmp_path) == ["a.json"]

    def test_it_is_released_if_a_partial_file_cannot_be_removed(self, tmp_path: Path) -> None:
        part = tmp_path / "a.part"
        part.mkdir()
        with pytest.raises(PluginError, match="cannot remove"), LockedDirectory(str(tmp_path), 1):
            pass
        part.rmdir()
        with LockedDirectory(str(tmp_path), 0):
            pass

    def test_waiters_for_a_removed_directory_lock_the_new_one_in_turn(self, tmp_path: Path) -> None:
        path = str(tmp_path / "c1")
        inside: list[int] = []
        overlaps: list[int] = []

        def enter() -> None:
            for _ in range(20):
                with LockedDirectory(path, 20):
                    inside.append(1)
                    overlaps.append(len(inside))
                    inside.pop()

        threads = [threading.Thread(target=enter) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert overlaps == [1] * 80
        assert not os.path.exists(path)

    def test_a_file_in_place_of_the_directory_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "c1").touch()
        with pytest.raises(PluginError, match="c1") as caught, LockedDirectory(str(tmp_path / "c1"), 1):
            pass
        assert caught.value.code == Code.IO_FAILURE

    def test_a_directory_that_cannot_be_created_is_an_error(self) -> None:
        with pytest.raises(PluginError, match="/proc/none") as caught, LockedDirectory("/proc/none", 1):
            pass
        assert caught.value.code == Code.IO_FAILURE

    def test_no_descriptor_is_leaked(self, tmp_path: Path) -> None:
        before = os.listdir("/proc/self/fd")
        for _ in range(3):
            with LockedDirectory(str(tmp_path / "c1"), 1):
                pass
        assert len(os.listdir("/proc/self/fd")) == len(before)
