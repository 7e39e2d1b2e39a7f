"""`tests/support/kernels/selection`: the tests that other kernels run, their families, and why others are left out."""

import ast
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
SELECTION = ROOT / "tests" / "support" / "kernels" / "selection"
OF_THE_KERNEL = [
    f"tests/cni_contrail/{folder}"
    for folder in ("link", "datapath", "drift", "inspection", "nested", "missing_modules")
]
_SELECTED = re.compile(r"(4\+6|4|6|-) +(tests/.+)")
_LEFT_OUT = re.compile(r"(rest|not) (tests/\S+\.py) (\S.+)")


class Line(NamedTuple):
    """A test with its families, or a file with `rest` or `not` and the reason."""

    kind: str
    test: str
    reason: str = ""

    @property
    def file(self) -> str:
        """The file or folder of the test."""
        return self.test.partition("::")[0]


def read_selection() -> list[Line]:
    lines = []
    for text in SELECTION.read_text().splitlines():
        if not text or text.startswith("#"):
            continue
        found = _SELECTED.fullmatch(text) or _LEFT_OUT.fullmatch(text)
        assert found is not None, f"neither a test nor left out: {text!r}"
        lines.append(Line(*found.groups()))
    return lines


LINES = read_selection()
SELECTED = [line for line in LINES if line.kind not in ("rest", "not")]


@pytest.mark.parametrize("line", SELECTED, ids=[line.test for line in SELECTED])
def test_each_selected_test_exists(line: Line) -> None:
    assert (ROOT / line.file).exists()
    _, _, function = line.test.partition("::")
    if function:
        tree = ast.parse((ROOT / line.file).read_text())
        names = {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}
        assert function.partition("[")[0] in names


def test_each_file_that_uses_the_kernel_is_selected_or_has_a_reason_why_not() -> None:
    files = {str(path.relative_to(ROOT)) for folder in OF_THE_KERNEL for path in (ROOT / folder).rglob("test_*.py")}
    whole = {line.test for line in SELECTED if "::" not in line.test}
    parts = {line.file for line in SELECTED if "::" in line.test}
    left_out = {kind: {line.file for line in LINES if line.kind == kind} for kind in ("rest", "not")}
    assert parts == left_out["rest"], "a part of a file is selected, and the rest has a reason"
    assert not (whole | parts) & left_out["not"]
    folders = tuple(f"{each}/" for each in whole)
    known = whole | parts | left_out["not"]
    assert {file for file in files if file not in known and not file.startswith(folders)} == set()


@pytest.mark.parametrize("folder", [each for each in OF_THE_KERNEL if "missing" not in each])
def test_both_families_are_run(folder: str) -> None:
    assert "4+6" in {line.kind for line in SELECTED if line.file.startswith(f"{folder}/")}


@pytest.mark.parametrize("file", ["test_networks", "test_routed_interfaces", "test_routed_networks"])
def test_an_add_of_each_kind_of_network_is_run_in_both_families(file: str) -> None:
    assert "4+6" in {line.kind for line in SELECTED if line.file == f"tests/cni_contrail/{file}.py"}


def test_what_the_script_runs_is_what_is_selected() -> None:
    """By its own expression, in extended syntax for `sed` as for Python."""
    (expression,) = re.findall(r"sed -nE 's/\^(.+) \+tests/tests/p'", (ROOT / "scripts" / "kernels").read_text())
    found = [text for text in SELECTION.read_text().splitlines() if re.match(f"{expression} +tests", text)]
    assert len(found) == len(SELECTED)
