"""`scripts/version.py`: the version of the package, from the tags of a repository."""

import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.version import Version

SCRIPT = Path(__file__).parent.parent / "scripts" / "version.py"
AUTHOR = {f"GIT_{who}_{what}": "nobody" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


class Repository:
    """A repository in `folder` with the script, which is committed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, **AUTHOR, "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
        self.environment.pop("CONTRAIL_VERSION", None)
        (folder / "scripts").mkdir()
        shutil.copy(SCRIPT, folder / "scripts")
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("add", ".")
        self.commit()

    def git(self, *arguments: str) -> str:
        """The output of git."""
        return self._run("git", *arguments)

    def commit(self, *, count: int = 1) -> None:
        """Adds commits without changes."""
        for _ in range(count):
            self.git("commit", "--quiet", "--allow-empty", "--message=Change something")

    def version(self, **variables: str) -> str:
        """What the script prints."""
        return self._run(sys.executable, "scripts/version.py", **variables)

    @property
    def commit_hash(self) -> str:
        """The abbreviated hash of the last commit."""
        return f"g{self.git('rev-parse', '--short', 'HEAD')}"

    def _run(self, *command: str, **variables: str) -> str:
        environment = {**self.environment, **variables}
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_before_the_first_release_it_leads_there(repository: Repository) -> None:
    repository.commit(count=2)
    assert repository.version() == f"0.1.0.dev3+{repository.commit_hash}"


@pytest.mark.parametrize("options", [[], ["--annotate", "--message=Release"]], ids=["lightweight", "annotated"])
def test_at_a_tag_it_is_that_release(repository: Repository, options: list[str]) -> None:
    repository.git("tag", *options, "v1.2.3")
    assert repository.version() == "1.2.3"


def test_after_a_tag_it_leads_to_the_next_release(repository: Repository) -> None:
    repository.git("tag", "v1.2.3")
    repository.commit(count=2)
    assert repository.version() == f"1.2.4.dev2+{repository.commit_hash}"


@pytest.mark.parametrize("tag", [None, "v1.2.3"])
def test_changed_files_are_no_release(repository: Repository, tag: str | None) -> None:
    if tag:
        repository.git("tag", tag)
    file = repository.folder / "scripts" / "version.py"
    file.write_text(f"{file.read_text()}# changed\n")
    base = "1.2.4.dev0" if tag else "0.1.0.dev1"
    assert repository.version() == f"{base}+{repository.commit_hash}.dirty"


@pytest.mark.parametrize("tag", ["nightly", "v2.0.0-rc1", "v2.0.0rc1", "other-1.0.0"])
def test_other_tags_do_not_count(repository: Repository, tag: str) -> None:
    repository.git("tag", "v1.2.3")
    repository.commit()
    repository.git("tag", tag)
    assert repository.version() == f"1.2.4.dev1+{repository.commit_hash}"


def test_a_tag_that_is_no_version_is_named(repository: Repository) -> None:
    repository.git("tag", "v1")
    with pytest.raises(AssertionError, match=r"tag v1-0-\w+: must have the form v1\.2\.3"):
        repository.version()


def test_later_checkouts_have_later_versions(repository: Repository) -> None:
    versions = [repository.version()]
    for tag in ("v0.1.0", "v0.1.1", "v0.2.0"):
        repository.commit()
        versions.append(repository.version())
        repository.git("tag", tag)
        versions.append(repository.version())
    assert all(Version(earlier) < Version(later) for earlier, later in pairwise(versions))


class TestACopyWithoutHistory:
    @pytest.fixture
    def copy(self, repository: Repository) -> Repository:
        """A copy of the files in a folder of another repository."""
        repository.git("tag", "v1.2.3")
        folder = repository.folder / "copy"
        shutil.copytree(repository.folder / "scripts", folder / "scripts")
        repository.folder = folder
        return repository

    def test_it_has_the_version_that_the_environment_states(self, copy: Repository) -> None:
        assert copy.version(CONTRAIL_VERSION="1.2.3") == "1.2.3"

    def test_else_it_has_none(self, copy: Repository) -> None:
        assert copy.version() == "0+unknown"
        assert copy.version(CONTRAIL_VERSION="") == "0+unknown"
        assert Version(copy.version()) < Version("0.1.0")
