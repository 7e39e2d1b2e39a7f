"""Completion: bash completes commands, options and values; zsh and fish by the same process; kubectl by lines.

All shells as users type in them: `tests/e2e/packages/test_completion_in_shells.py`.
"""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.cluster_processes import BINARIES

TIMEOUT = 60
SEPARATOR = "\013"


def completed_by_bash(line: str) -> set[str]:
    """What bash completes the last word of a line to, with the code that the command prints."""
    script = f"""
        eval "$(contrailctl completion bash)"
        COMP_LINE='{line}' COMP_POINT={len(line)} COMP_TYPE=9
        read -r -a COMP_WORDS <<< "$COMP_LINE"
        [[ $COMP_LINE == *' ' ]] && COMP_WORDS+=('')
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _python_argcomplete contrailctl "${{COMP_WORDS[COMP_CWORD]}}" contrailctl
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    ended = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={**os.environ, "PATH": f"{BINARIES}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=True,
    )
    return {each.strip() for each in ended.stdout.splitlines() if each.strip()}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("contrailctl st", {"status"}),
        ("contrailctl get ne", {"networks", "network"}),
        ("contrailctl status --kubec", {"--kubeconfig"}),
        ("contrailctl status --output ", {"table", "json", "yaml"}),
        ("contrailctl completion ", {"bash", "zsh", "fish"}),
        ("contrailctl check re", set()),
    ],
)
def test_bash_completes_the_last_word(line: str, expected: set[str]) -> None:
    found = {word for word in completed_by_bash(line) if line.endswith("--kubec") or not word.startswith("-")}
    assert found == expected


def completions_for(shell: str, line: str, file: Path) -> list[str]:
    """What the process writes for a shell that asks; `file` is new."""
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_SHELL": shell,
        "_ARGCOMPLETE_IFS": SEPARATOR,
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(file),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    subprocess.run([BINARIES / "contrailctl"], env={**os.environ, **asked}, timeout=TIMEOUT, check=True)
    return [each for each in file.read_text().split(SEPARATOR) if each]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_ask_the_same_process(shell: str, tmp_path: Path) -> None:
    code = subprocess.run(
        [BINARIES / "contrailctl", "completion", shell], capture_output=True, text=True, timeout=TIMEOUT, check=True
    ).stdout
    assert "_ARGCOMPLETE" in code
    assert "contrailctl" in code
    (found,) = completions_for(shell, "contrailctl tra", tmp_path / "found")
    assert found.startswith("trace")


@pytest.mark.parametrize(("shell", "expected"), [("bash", []), ("zsh", []), ("fish", ["{folder}/a-file"])])
def test_files_are_left_to_the_shells_that_complete_them(shell: str, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "a-file").touch()
    found = completions_for(shell, f"contrailctl status --kubeconfig {tmp_path}/a-f", tmp_path / "found")
    assert found == [each.format(folder=tmp_path) for each in expected]


def test_a_completion_that_zsh_shows_may_lack_a_description(tmp_path: Path) -> None:
    found = completions_for("zsh", "contrailctl status --output=j", tmp_path / "found")
    assert found == ["--output=json:"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["tra"], ["trace"]),
        (["get", "po"], ["ports", "port", "pods", "pod"]),
        (["status", "--cont"], ["--context"]),
        (["sysdump", "--file", ""], []),
        (["status", "--kubeconfig", "ü", "--cont"], ["--context"]),
    ],
)
def test_kubectl_gets_a_line_for_each_completion_and_what_to_do(words: list[str], expected: list[str]) -> None:
    ended = subprocess.run(
        [BINARIES / "kubectl_complete-contrail", *words], capture_output=True, text=True, timeout=TIMEOUT, check=True
    )
    *found, directive = ended.stdout.splitlines()
    assert (set(found), directive, ended.stderr) == (set(expected), ":4", "")
