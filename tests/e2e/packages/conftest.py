"""What `scripts/package` builds, once for all tests."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _nothing_is_left() -> None:
    """Disables the check for leftovers: these tests have no host."""


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with source archive, wheel, shims, bills of materials and checksums."""
    folder = tmp_path_factory.mktemp("packages")
    subprocess.run([ROOT / "scripts" / "package", folder], check=True, capture_output=True, timeout=100)
    return folder


@pytest.fixture(scope="session")
def sdist(packages: Path) -> Path:
    """The source archive."""
    (found,) = packages.glob("*.tar.gz")
    return found


@pytest.fixture(scope="session")
def wheel(packages: Path) -> Path:
    """The wheel."""
    (found,) = packages.glob("*.whl")
    return found
