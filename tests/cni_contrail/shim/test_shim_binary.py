"""The shim is one static, hardened file, and runs in an otherwise empty root file system."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.shim import ADD, ROOT, ScriptedDaemon, Shim

SIZE = 64 * 1024


def readelf(option: str, binary: str) -> str:
    return subprocess.run(["readelf", "-W", option, binary], check=True, stdout=subprocess.PIPE, text=True).stdout


@pytest.fixture
def segments(installed: Shim) -> dict[str, str]:
    """Returns the permissions of segments by type."""
    row = re.compile(r"^ {2}([A-Z_]+) (?: +0x\w+){5} ([R ][W ][E ])", re.MULTILINE)
    return dict(row.findall(readelf("--segments", installed.binary)))


def test_the_binary_is_static(segments: dict[str, str], installed: Shim) -> None:
    assert "INTERP" not in segments
    assert "NEEDED" not in readelf("--dynamic", installed.binary)


def test_the_binary_is_position_independent(installed: Shim) -> None:
    assert re.search(r"Type: +DYN ", readelf("--file-header", installed.binary))
    assert re.search(r"Flags: .*\bPIE\b", readelf("--dynamic", installed.binary))
    assert "TEXTREL" not in readelf("--dynamic", installed.binary)


def test_no_segment_is_writable_and_executable(segments: dict[str, str]) -> None:
    assert segments["GNU_STACK"] == "RW "
    assert not [kind for kind, permissions in segments.items() if "W" in permissions and "E" in permissions]


def test_relocations_are_read_only(segments: dict[str, str], installed: Shim) -> None:
    assert segments["GNU_RELRO"] == "R  "
    assert "BIND_NOW" in readelf("--dynamic", installed.binary)


def test_the_binary_is_small_and_stripped(installed: Shim) -> None:
    assert Path(installed.binary).stat().st_size <= SIZE
    assert ".symtab" not in readelf("--sections", installed.binary)
    assert ".debug" not in readelf("--sections", installed.binary)


def in_root(root: Path) -> tuple[str, str]:
    return shutil.which("chroot") or "chroot", str(root)


class TestAnEmptyRoot:
    @pytest.fixture
    def root(self, installed: Shim, tmp_path: Path) -> Path:
        """A root file system with the shim in it and nothing else."""
        shutil.copy2(installed.binary, tmp_path / "shim")
        return tmp_path

    def test_version_works(self, installed: Shim, root: Path) -> None:
        outcome = Shim("/shim", "/none").run({"CNI_COMMAND": "VERSION"}, prefix=in_root(root))
        assert outcome == installed.run({"CNI_COMMAND": "VERSION"})

    def test_a_missing_daemon_is_reported(self, root: Path) -> None:
        outcome = Shim("/shim", "/run/none").run(ADD, b"{}", prefix=in_root(root))
        assert json.loads(outcome.stdout)["msg"] == "contrail-cnid unavailable: No such file or directory"

    def test_a_call_is_forwarded(self, root: Path) -> None:
        with (
            ScriptedDaemon(str(root / "s")) as daemon,
            Shim("/shim", "/s").started(ADD, b"{}", prefix=in_root(root)) as running,
        ):
            connection, received = daemon.take()
            with connection:
                connection.answer(0, b"{}\n")
                assert connection.receipt() == b"\1"
            assert running.outcome() == (0, b"{}\n", b"")
        assert received.stdin == b"{}"


def test_the_process_touches_little_memory(installed: Shim, daemon: ScriptedDaemon) -> None:
    """Unused parts of the buffers for the largest request and response take no memory."""
    with installed.started(ADD, b"{}") as running:
        connection, _ = daemon.take()
        with connection:
            status = Path(f"/proc/{running.process.pid}/status").read_text()
            connection.answer(0, b"")
        assert running.outcome().status == 0
    (resident,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    assert int(resident) < 512


class TestTheBuild:
    @pytest.fixture
    def checkout(self, tmp_path: Path) -> Path:
        """Another checkout, as far as the build needs it."""
        for folder in ("scripts", "cni_contrail/shim"):
            shutil.copytree(ROOT / folder, tmp_path / folder)
        return tmp_path

    def build(self, checkout: Path, umask: int = 0o022, **environment: str) -> bytes:
        command = [checkout / "scripts/build-shim"]
        variables = {**os.environ, **environment}
        subprocess.run(command, check=True, stdout=subprocess.PIPE, env=variables, umask=umask, timeout=60)
        return (checkout / "build/contrail-k8s-cni").read_bytes()

    def test_the_same_sources_make_the_same_binary(self, installed: Shim, checkout: Path) -> None:
        assert self.build(checkout) == Path(installed.binary).read_bytes()

    def test_the_binary_depends_on_nothing_but_the_sources(self, installed: Shim, checkout: Path) -> None:
        for source in checkout.rglob("*.[ch]"):
            os.utime(source, (0, 0))
        objects = checkout / "objects"
        objects.mkdir()
        elsewhere = {"TMPDIR": str(objects), "TZ": "Pacific/Kiritimati", "LANG": "de_DE.UTF-8", "USER": "somebody"}
        built = self.build(checkout, umask=0o077, SOURCE_DATE_EPOCH="0", **elsewhere)
        assert built == Path(installed.binary).read_bytes()
        assert (checkout / "build/contrail-k8s-cni").stat().st_mode & 0o777 == 0o755

    def test_a_changed_header_is_built_again(self, checkout: Path) -> None:
        before = self.build(checkout)
        header = checkout / "cni_contrail/shim/protocol.h"
        header.write_text(header.read_text().replace("ACKNOWLEDGE_SECONDS 2", "ACKNOWLEDGE_SECONDS 3"))
        assert self.build(checkout) != before
