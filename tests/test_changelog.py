"""`changelog.d` has one valid fragment for each change, and `scripts/changelog` moves them to CHANGELOG.md."""

import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "changelog.d"
KINDS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["towncrier"]["fragment"]
FRAGMENTS = sorted(path.name for path in FOLDER.iterdir() if path.name not in ("README.md", "template.md"))
BULLET = "- "


def changelog(*arguments: str, root: Path = ROOT) -> str:
    """What the script of a checkout prints."""
    command = [str(root / "scripts" / "changelog"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", FRAGMENTS)
def test_a_fragment_is_named_after_the_change_and_its_kind(name: str) -> None:
    what, _, kind = name.removesuffix(".md").rpartition(".")
    assert name.endswith(".md")
    assert re.fullmatch(r"[a-z0-9-]+", what)
    assert kind in KINDS


@pytest.mark.parametrize("name", FRAGMENTS)
def test_a_fragment_is_the_text_of_one_entry(name: str) -> None:
    text = (FOLDER / name).read_text()
    assert text.endswith(".\n")
    lines = text.splitlines()
    assert not [line for line in lines if not line.strip() or line.startswith(("#", "-", "*"))]
    assert max(map(len, lines)) <= 120 - len(BULLET)


def test_the_next_section_has_every_fragment() -> None:
    draft = changelog()
    for name in FRAGMENTS:
        first, *others = (FOLDER / name).read_text().splitlines()
        assert "\n".join([f"{BULLET}{first}", *(f"  {line}" for line in others)]) in draft


class TestARelease:
    @pytest.fixture
    def checkout(self, tmp_path: Path) -> Path:
        """A repository with the script, the changelog and two fragments, on the environment of this checkout."""
        for name in ("scripts/changelog", "pyproject.toml", "CHANGELOG.md", "changelog.d/template.md"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
        (tmp_path / "scripts" / "setup").symlink_to("/bin/true")
        (tmp_path / ".venv").symlink_to(Path(sys.executable).parents[1])
        (tmp_path / "changelog.d" / "colours.fixed.md").write_text("Tables have\ncolours.\n")
        (tmp_path / "changelog.d" / "tables.added.md").write_text("Tables.\n")
        for command in (["init", "--quiet"], ["add", "--all", ":!.venv"]):
            subprocess.run(["git", *command], cwd=tmp_path, check=True)
        return tmp_path

    def test_fragments_become_the_newest_section(self, checkout: Path) -> None:
        before = (checkout / "CHANGELOG.md").read_text()
        changelog("9.8.7", "--date", "2030-01-02", root=checkout)
        section = "## 9.8.7 - 2030-01-02\n\n### Added\n\n- Tables.\n\n### Fixed\n\n- Tables have\n  colours.\n\n"
        head, first, rest = before.partition("## ")
        assert (checkout / "CHANGELOG.md").read_text() == head + section + first + rest

    def test_fragments_are_removed_and_the_folder_stays(self, checkout: Path) -> None:
        changelog("9.8.7", root=checkout)
        assert [path.name for path in (checkout / "changelog.d").iterdir()] == ["template.md"]


def test_the_newest_section_is_the_last_release() -> None:
    """Before the first release there is one section, which becomes a part of that release."""
    last = runpy.run_path(str(ROOT / "scripts" / "version.py"))["last_release"]()
    sections = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert sections[0] == (last or "Unreleased")
    assert sections.count("Unreleased") == (last is None)
