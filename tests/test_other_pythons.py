"""`scripts/other-pythons` tests on the interpreters that a machine has, and says which it has not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).parents[1] / "scripts/other-pythons"
_OTHER = next(minor for minor in (14, 13) if minor != sys.version_info.minor)
_PYTHON = f"""#!/bin/sh
case "$1 $2" in
  "-c "*) ;;
  "-V "* | "-VV "*) echo "Python 3.{_OTHER}.0" ;;
  "-m venv")
    mkdir -p "$3/bin"
    cp "$0" "$3/bin/python"
    printf '#!/bin/sh\\necho "pip $*" >&2\\n' > "$3/bin/pip"
    chmod +x "$3/bin/pip"
    ;;
  "-m pytest") echo "tested: $*"; exit STATUS ;;
  *) exit 99 ;;
esac
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with what the machine has in PATH, without any Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for each in (each for top in ("/usr/bin", "/bin") for each in Path(top).iterdir()):
        if not each.name.startswith("python") and not (folder / each.name).is_symlink():
            (folder / each.name).symlink_to(each)
    return folder


def run(programs: Path) -> subprocess.CompletedProcess[str]:
    own = {"PATH": str(programs), "PYENV_ROOT": str(programs), "XDG_CACHE_HOME": str(programs.parent), "CI": ""}
    return subprocess.run(
        [_SCRIPT, "-x"], env=os.environ | own, capture_output=True, text=True, timeout=60, check=False
    )


def add_python(file: Path, *, status: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_PYTHON.replace("STATUS", str(status)))
    file.chmod(0o755)


def test_says_what_a_machine_without_other_interpreters_does_not_test(programs: Path) -> None:
    ended = run(programs)
    assert ended.returncode == 0, ended.stderr
    others = {11, 12, 13, 14} - {sys.version_info.minor}
    said = {f"other-pythons: Python 3.{minor} not found, not tested" for minor in others}
    own = f"other-pythons: Python 3.{sys.version_info.minor} runs all other checks"
    assert set(ended.stdout.splitlines()) == said | {own}


@pytest.mark.parametrize(
    "file", [f"bin/python3.{_OTHER}", f"bin/versions/3.{_OTHER}.0/bin/python"], ids=["in PATH", "of pyenv"]
)
def test_tests_on_an_interpreter_with_the_packages_of_the_lock_file(tmp_path: Path, programs: Path, file: str) -> None:
    add_python(tmp_path / file, status=0)
    ended = run(programs)
    assert ended.returncode == 0, ended.stderr
    assert "tests/manager/parsing" in ended.stdout
    assert "--require-hashes --no-deps -r requirements.lock" in ended.stderr
    assert f"Python 3.{_OTHER} not found" not in ended.stdout


def test_installs_once(tmp_path: Path, programs: Path) -> None:
    add_python(tmp_path / f"bin/python3.{_OTHER}", status=0)
    assert "requirements.lock" in run(programs).stderr
    again = run(programs)
    assert "requirements.lock" not in again.stderr
    assert "-e ." in again.stderr


def test_fails_if_the_tests_fail_on_an_interpreter(tmp_path: Path, programs: Path) -> None:
    add_python(tmp_path / f"bin/python3.{_OTHER}", status=1)
    ended = run(programs)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == f"other-pythons: tests failed on Python 3.{_OTHER}"
