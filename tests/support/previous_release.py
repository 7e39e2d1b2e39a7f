"""The previous release, whose commit `scripts/e2e` names: tests run its programs beside those of the checkout."""

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.support.kubectl.client import ROOT

_COMMIT = "CONTRAIL_PREVIOUS_RELEASE"


def previous_commit() -> str:
    """The hash of its commit."""
    return os.environ[_COMMIT]


class PreviousPrograms(NamedTuple):
    """Its source tree."""

    folder: Path

    @property
    def environment(self) -> tuple[str, ...]:
        """A command that runs another one, one of our programs, with the code of the previous release."""
        return ("env", "--unset=PYTHONDONTWRITEBYTECODE", f"PYTHONPATH={self.folder}")

    def have_run(self, package: str) -> bool:
        """Whether a program has imported a package of it since it was extracted, and compiled it."""
        return (self.folder / package / "__pycache__").is_dir()


def extract_previous(folder: Path, *paths: str) -> None:
    """Writes its files into a folder, only those below `paths` if any are named."""
    archive = folder / "release.tar"
    command = ["git", "archive", f"--output={archive}", previous_commit(), *paths]
    subprocess.run(command, cwd=ROOT, check=True, timeout=60)
    subprocess.run(["tar", "-xf", archive, "-C", folder], check=True, timeout=60)
    archive.unlink()


def previous_programs(folder: Path) -> PreviousPrograms:
    """Writes its source tree into a folder."""
    extract_previous(folder)
    return PreviousPrograms(folder)
