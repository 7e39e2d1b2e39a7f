"""What a release publishes: it is complete, and the same sources make the same bytes."""

import os
import platform
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.e2e.packages.conftest import ROOT


@pytest.fixture
def unpacked(sdist: Path, tmp_path: Path) -> Path:
    """The sources as somebody else unpacks them: elsewhere, with other times and rights."""
    subprocess.run(["tar", "--extract", "--gzip", "--file", sdist], check=True, cwd=tmp_path)
    (folder,) = tmp_path.iterdir()
    for path in folder.rglob("*"):
        os.utime(path, (0, 0))
        path.chmod(path.stat().st_mode | 0o060)
    return folder


@pytest.mark.parametrize("target", ["sdist", "wheel"])
def test_the_unpacked_sources_make_the_same_bytes(target: str, unpacked: Path, packages: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(tmp_path / "dist")]
    subprocess.run(command, check=True, capture_output=True, cwd=unpacked, timeout=100)
    (built,) = (tmp_path / "dist").iterdir()
    assert built.read_bytes() == (packages / built.name).read_bytes()


def test_the_source_archive_has_every_file_of_the_repository(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    assert listed() - names == set()
    assert names - listed("--cached", "--others", "--exclude-standard") == {"PKG-INFO"}


def listed(*options: str) -> set[str]:
    """Files of the checkout, by default those that are tracked."""
    command = ["git", "ls-files", *options]
    return set(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout.splitlines())


def test_the_version_is_that_of_the_checkout(sdist: Path, wheel: Path) -> None:
    version = subprocess.run([ROOT / "scripts" / "version.py"], check=True, capture_output=True, text=True).stdout
    assert sdist.name == f"contrail_multinet-{version.strip()}.tar.gz"
    assert wheel.name == f"contrail_multinet-{version.strip()}-py3-none-any.whl"


def test_checksums_name_every_file(packages: Path, sdist: Path, wheel: Path) -> None:
    shims = {f"contrail-k8s-cni-linux-{machine}" for machine in (platform.machine(), "aarch64")}
    files = {sdist.name, wheel.name, *shims, *(file.name for file in packages.glob("*.cdx.json"))}
    assert {file.name for file in packages.iterdir()} == files | {"SHA256SUMS"}
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], check=True, capture_output=True, text=True, cwd=packages
    )
    assert sorted(checked.stdout.splitlines()) == sorted(f"{name}: OK" for name in files)
