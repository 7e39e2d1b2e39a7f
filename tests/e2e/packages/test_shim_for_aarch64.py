"""The shim for aarch64, emulated: it is static and hardened, and forwards a call like that for this machine."""

import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.packages.conftest import ROOT
from tests.support.shim import ADD, ScriptedDaemon, Shim, ShimOutcome, identity

CONFIG = b'{"cniVersion": "1.0.0", "name": "net", "type": "contrail-k8s-cni"}'


@pytest.fixture(scope="session")
def binary(packages: Path) -> str:
    """The shim of the release."""
    return str(packages / "contrail-k8s-cni-linux-aarch64")


@pytest.fixture(scope="session")
def emulator() -> tuple[str, ...]:
    """The command that runs programs for aarch64; on such a machine, none."""
    if platform.machine() == "aarch64":
        return ()
    command = [str(ROOT / "scripts" / "from-package"), "qemu-aarch64-static", "qemu-user-static"]
    folder = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=300).stdout.strip()
    return (f"{folder}/qemu-aarch64-static",)


@pytest.fixture
def socket_path() -> Iterator[str]:
    """A path short enough for a Unix socket."""
    with tempfile.TemporaryDirectory(prefix="ct-") as folder:
        yield f"{folder}/cni.sock"


def readelf(option: str, binary: str) -> str:
    return subprocess.run(["readelf", "-W", option, binary], check=True, stdout=subprocess.PIPE, text=True).stdout


def test_the_binary_is_static_hardened_and_stripped(binary: str) -> None:
    header, segments, dynamic = (readelf(option, binary) for option in ("--file-header", "--segments", "--dynamic"))
    assert re.search(r"Machine: +AArch64", header)
    assert "INTERP" not in segments
    assert "NEEDED" not in dynamic
    assert re.search(r"Flags: .*\bNOW\b.*\bPIE\b", dynamic)
    assert "TEXTREL" not in dynamic
    assert re.search(r"GNU_STACK .* RW ", segments)
    assert re.search(r"GNU_RELRO .* R ", segments)
    assert ".symtab" not in readelf("--sections", binary)


def test_the_same_sources_make_the_same_binary(binary: str, tmp_path: Path) -> None:
    for folder in ("scripts", "cni_contrail/shim"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    command = [str(tmp_path / "scripts/build-shim"), "--aarch64"]
    subprocess.run(command, check=True, stdout=subprocess.PIPE, umask=0o077, timeout=100)
    assert (tmp_path / "build/contrail-k8s-cni-aarch64").read_bytes() == Path(binary).read_bytes()


def test_version_equals_that_of_the_shim_for_this_machine(
    binary: str, emulator: tuple[str, ...], packages: Path, socket_path: str
) -> None:
    own = str(packages / f"contrail-k8s-cni-linux-{platform.machine()}")
    for stdin in (b"{}", b"no JSON"):
        expected = Shim(own, socket_path).run({"CNI_COMMAND": "VERSION"}, stdin)
        assert expected.status == 0
        assert Shim(binary, socket_path).run({"CNI_COMMAND": "VERSION"}, stdin, prefix=emulator) == expected


def test_a_call_is_forwarded_with_its_sandbox(
    binary: str, emulator: tuple[str, ...], socket_path: str, tmp_path: Path
) -> None:
    sandbox = tmp_path / "sandbox"
    sandbox.touch()
    environment = {**ADD, "CNI_IFNAME": "eth0", "CNI_NETNS": str(sandbox)}
    with (
        ScriptedDaemon(socket_path) as daemon,
        Shim(binary, socket_path).started(environment, CONFIG, prefix=emulator) as running,
    ):
        connection, received = daemon.take()
        with connection:
            connection.answer(0, b'{"cniVersion": "1.0.0"}\n')
            assert connection.receipt() == b"\1"
        assert running.outcome() == ShimOutcome(0, b'{"cniVersion": "1.0.0"}\n', b"")
    assert received.netns == identity(str(sandbox))
    assert received.stdin == CONFIG
    assert sorted(received.variables) == [b"CNI_COMMAND=ADD", b"CNI_IFNAME=eth0", f"CNI_NETNS={sandbox}".encode()]


def test_an_answer_of_the_largest_size_is_printed(binary: str, emulator: tuple[str, ...], socket_path: str) -> None:
    output = b"x" * (1 << 20)
    with (
        ScriptedDaemon(socket_path) as daemon,
        Shim(binary, socket_path).started(ADD, CONFIG, prefix=emulator) as running,
    ):
        connection, _ = daemon.take()
        with connection:
            connection.answer(1, output)
            assert running.outcome() == ShimOutcome(1, output, b"")
