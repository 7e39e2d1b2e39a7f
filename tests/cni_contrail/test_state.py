"""What is remembered between calls: records, their files and the lock of a container."""

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cni_contrail.errors import Code, PluginError, TryAgainError
from cni_contrail.journal import Journal
from cni_contrail.link.plan import Address, DefaultRoute, InterfacePlan, ReplacedRoute, Route
from cni_contrail.state.attachments import Attachments
from cni_contrail.state.files import file_name, write_whole
from cni_contrail.state.lock import locked_directory
from cni_contrail.state.records import AttachedInterface, Record, decode_record, encode_record

text = st.text(max_size=8)
plans = st.builds(
    InterfacePlan,
    name=text,
    host_name=text,
    alias=text,
    mac=text,
    mtu=st.integers(),
    addresses=st.lists(st.builds(Address, text, st.integers()), max_size=2).map(tuple),
    routes=st.lists(st.builds(Route, text, st.none() | text), max_size=2).map(tuple),
    defaults=st.lists(st.builds(DefaultRoute, text, st.booleans()), max_size=2).map(tuple),
)
records = st.builds(
    Record,
    container_id=text,
    ifname=text,
    attempt=text,
    netns=text,
    thick=st.booleans(),
    stock=st.booleans(),
    machine=text,
    machine_name=text,
    interfaces=st.lists(st.builds(AttachedInterface, text, st.integers(), plans), max_size=2).map(tuple),
    replaced=st.lists(
        st.builds(ReplacedRoute, st.integers(), st.none() | text, text, st.integers(), st.booleans()), max_size=2
    ).map(tuple),
    finished=st.booleans(),
)


def record(container: str = "c1", ifname: str = "eth0", machine: str = "m1") -> Record:
    return Record(container, ifname, "a1", "/n", thick=True, machine=machine)


@pytest.fixture
def attachments(tmp_path: Path) -> Attachments:
    return Attachments(str(tmp_path / "state"), Journal(str(tmp_path / "log")))


class TestRecords:
    @given(records)
    def test_a_record_is_read_as_it_was_written(self, written: Record) -> None:
        assert decode_record(encode_record(written)) == written

    @given(records, st.data())
    def test_a_record_cut_anywhere_is_damaged(self, written: Record, data: st.DataObject) -> None:
        content = encode_record(written)
        cut = content[: data.draw(st.integers(0, len(content) - 1))]
        with pytest.raises(ValueError, match="no record of version 1"):
            decode_record(cut)

    @given(st.binary() | st.text().map(str.encode))
    def test_anything_else_is_damaged(self, content: bytes) -> None:
        with pytest.raises(ValueError, match="no record of version 1"):
            decode_record(content)

    @given(records, st.sampled_from(["version", "ifname", "interfaces", "replaced", "machine"]))
    def test_a_record_without_one_of_its_keys_is_damaged(self, written: Record, key: str) -> None:
        content = encode_record(written).replace(f'"{key}":'.encode(), f'"{key}-gone":'.encode(), 1)
        with pytest.raises(ValueError, match="no record of version 1"):
            decode_record(content)


class TestFiles:
    def test_they_are_roots_alone(self, attachments: Attachments) -> None:
        old = os.umask(0)
        try:
            attachments.write(record())
        finally:
            os.umask(old)
        for folder, _, names in os.walk(attachments.state_dir):
            assert os.stat(folder).st_mode & 0o777 == 0o700
            for name in names:
                assert os.stat(os.path.join(folder, name)).st_mode & 0o777 == 0o600

    def test_a_file_is_replaced_whole_and_nothing_else_is_left(self, tmp_path: Path) -> None:
        path = tmp_path / "a" / "b"
        for content in (b"first", b"second", b""):
            write_whole(str(path), content)
            assert path.read_bytes() == content
        assert [each.name for each in path.parent.iterdir()] == ["b"]

    def test_a_failed_write_names_the_file_and_leaves_the_old_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "file"
        path.write_bytes(b"old")
        monkeypatch.setattr(os, "rename", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(PluginError, match="No space left on device") as caught:
            write_whole(str(path), b"new")
        assert caught.value.code == Code.IO_FAILURE
        assert str(path) in caught.value.message
        assert path.read_bytes() == b"old"
        assert [each.name for each in tmp_path.iterdir()] == ["file"]

    @given(st.integers(1, 1000))
    def test_every_container_id_has_a_file_name(self, length: int) -> None:
        name = file_name("a" * length)
        assert len(name) <= 200
        assert (name == "a" * length) == (length <= 128)

    def test_long_container_ids_keep_apart(self, attachments: Attachments) -> None:
        long = ["c" * 300 + "1", "c" * 300 + "2"]
        for container in long:
            attachments.write(record(container))
        assert [attachments.of_container(container)[0].container_id for container in long] == long


class TestAttachments:
    def test_records_are_found_by_container_and_interface(self, attachments: Attachments) -> None:
        for container, ifname in (("c1", "eth0"), ("c1", ".x"), ("c2", "eth0"), ("c1.json", "a.json")):
            attachments.write(record(container, ifname))
        assert attachments.read("c1", "eth0") == record("c1", "eth0")
        assert attachments.read("c1", "eth1") is None
        assert attachments.read("c3", "eth0") is None
        assert {each.ifname for each in attachments.of_container("c1")} == {"eth0", ".x"}
        assert attachments.of_container("c3") == []

    def test_the_name_of_the_state_directorys_own_folders_is_no_container(self, attachments: Attachments) -> None:
        folder = Path(attachments.state_dir)
        attachments.write(record("c1"))
        (folder / "c1" / "eth0.json").write_bytes(b"")
        assert attachments.read("c1", "eth0") is None
        assert [path.name for path in (folder / ".damaged").iterdir()] == ["c1.eth0.json"]

    def test_what_a_killed_call_began_to_write_goes_with_the_next(self, attachments: Attachments) -> None:
        folder = Path(attachments.state_dir) / "c1"
        folder.mkdir(parents=True)
        (folder / "eth0.json.part").write_bytes(b"{")
        with attachments.lock("c1", 1):
            assert attachments.read("c1", "eth0") is None
        assert not folder.exists()

    def test_removing_twice_is_once(self, attachments: Attachments) -> None:
        attachments.write(record())
        attachments.remove(record())
        attachments.remove(record())
        assert attachments.read("c1", "eth0") is None


class TestLock:
    def test_one_holds_it_at_a_time(self, tmp_path: Path) -> None:
        path = str(tmp_path / "c1")
        with locked_directory(path, 1):
            with pytest.raises(TryAgainError, match=path), locked_directory(path, 0.1):
                pass
            with locked_directory(str(tmp_path / "c2"), 0.1):
                pass
        with locked_directory(path, 0.1):
            pass

    def test_the_directory_goes_with_the_last_file_in_it(self, tmp_path: Path) -> None:
        path = tmp_path / "c1"
        with locked_directory(str(path), 1):
            (path / "x").touch()
        assert path.exists()
        with locked_directory(str(path), 1):
            (path / "x").unlink()
        assert not path.exists()

    def test_those_that_wait_for_a_directory_that_goes_hold_the_new_one_by_turns(self, tmp_path: Path) -> None:
        path = str(tmp_path / "c1")
        inside: list[int] = []
        overlaps: list[int] = []

        def enter() -> None:
            for _ in range(20):
                with locked_directory(path, 20):
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

    def test_a_file_in_its_place_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "c1").touch()
        with pytest.raises(PluginError, match="c1") as caught, locked_directory(str(tmp_path / "c1"), 1):
            pass
        assert caught.value.code == Code.IO_FAILURE

    def test_a_directory_that_cannot_be_made_is_named(self) -> None:
        with pytest.raises(PluginError, match="/proc/none") as caught, locked_directory("/proc/none", 1):
            pass
        assert caught.value.code == Code.IO_FAILURE

    def test_no_descriptor_is_left(self, tmp_path: Path) -> None:
        before = os.listdir("/proc/self/fd")
        for _ in range(3):
            with locked_directory(str(tmp_path / "c1"), 1):
                pass
        assert len(os.listdir("/proc/self/fd")) == len(before)
