"""Completion as users have it, after the documented line: on a terminal of bash and zsh, they type a word and TAB.

fish is asked by its builtin `complete -C` in a shell that is not interactive; what TAB inserts is fish's own work.
"""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.interactive_shell import InteractiveShell, environment, interactive_shell
from tests.e2e.packages.conftest import ROOT

BASH_COMPLETION = Path("/usr/share/bash-completion/bash_completion")  # kubectl's code for bash needs it
BEFORE = {"bash": f"source {BASH_COMPLETION}", "zsh": "autoload -Uz compinit && compinit"}
KUBECTL = {shell: f"source <(kubectl completion {shell})" for shell in BEFORE} | {
    "fish": "kubectl completion fish | source"
}
_END = "\x1e"
"""After the proposals for one line: descriptions have no control characters."""

LINES = [
    ("contrailctl st", "contrailctl status "),
    ("contrailctl get netw", "contrailctl get network"),
    ("contrailctl status --output=js", "contrailctl status --output=json "),
    ("cd /tmp && contrailctl completion z", "cd /tmp && contrailctl completion zsh "),
    ("KUBECONFIG=other contrailctl status --kubec", "KUBECONFIG=other contrailctl status --kubeconfig "),
    ("contrailctl status --kubeconfig ü --contex", "contrailctl status --kubeconfig ü --context "),
    ("contrailctl status --kubeconfig ~/.kube/conf", "contrailctl status --kubeconfig ~/.kube/config "),
    ("contrailctl status --kubeconfig $HOME/.kube/conf", "contrailctl status --kubeconfig $HOME/.kube/config "),
    ("contrailctl status --kubeconfig=.kube/conf", "contrailctl status --kubeconfig=.kube/config "),
    ("kubectl contrail st", "kubectl contrail status "),
]


def documented(shell: str) -> str:
    """The line that the page tells users of this shell to add to their configuration."""
    page = (ROOT / "docs" / "cluster-commands.md").read_text()
    (line,) = re.findall(rf"^(.*contrailctl completion {shell}\b.*?) +#", page, re.MULTILINE)
    return str(line)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of the shells' user."""
    made = tmp_path_factory.mktemp("home")
    (made / ".kube").mkdir()
    (made / ".kube" / "config").touch()
    return made


@pytest.fixture(scope="module", params=["bash", "zsh"])
def shell(request: pytest.FixtureRequest, home: Path) -> Iterator[InteractiveShell]:
    """A shell that has run the documented line, and that of kubectl."""
    with interactive_shell(request.param, home) as started:
        for line in (BEFORE[request.param], documented(request.param), KUBECTL[request.param]):
            started.run(line)
        yield started


@pytest.fixture(scope="module")
def completed_by_fish(home: Path) -> list[set[str]]:
    """What fish proposes for the last word of each line."""
    asked = "\n".join(rf"complete -C {shlex.quote(line)}; printf '\x1e'" for line, _ in LINES)
    ended = subprocess.run(
        ["fish", "--no-config", "-c", f"{documented('fish')}\n{KUBECTL['fish']}\n{asked}"],
        env=environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ended.stderr == ""
    return [{each.partition("\t")[0] for each in found.splitlines()} for found in ended.stdout.split(_END)[:-1]]


@pytest.mark.parametrize(("line", "completed"), LINES)
def test_tab_completes_the_word(shell: InteractiveShell, line: str, completed: str) -> None:
    assert shell.completed(line) == completed


def test_two_tabs_list_the_values_of_an_option(shell: InteractiveShell) -> None:
    listed = shell.listed("contrailctl status --output=")
    assert [each for each in ("json", "table", "yaml", "None") if each in listed] == ["json", "table", "yaml"]


@pytest.mark.parametrize(("line", "completed"), LINES)
def test_fish_completes_the_word(completed_by_fish: list[set[str]], line: str, completed: str) -> None:
    found = completed_by_fish[LINES.index((line, completed))]
    word = completed.rstrip().rpartition(" ")[2]
    assert word in found
    assert all(each.startswith(word) for each in found)
