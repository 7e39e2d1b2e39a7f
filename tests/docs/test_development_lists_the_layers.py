"""The table of layers in `docs/development.md`, compared with the imports of each package."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.support.documentation import ROOT, code, rows

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = set(PROJECT["tool"]["importlinter"]["root_packages"])
TABLE = {code(row[0])[0].rstrip("/"): row for row in rows("development", "Layers")}


def test_every_package_is_documented_and_no_other() -> None:
    assert set(TABLE) == PACKAGES


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_the_documented_imports_are_those_of_the_package(package: str) -> None:
    found = {name for path in (ROOT / package).rglob("*.py") for name in imported(path)}
    assert set(code(TABLE[package][2])) & PACKAGES == (found & PACKAGES) - {package}


def imported(path: Path) -> set[str]:
    """The top-level names that a module imports anywhere in it."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    plain = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    named = [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {name.partition(".")[0] for name in (*plain, *named)}


def test_every_dependency_is_documented_and_no_other() -> None:
    names = {re.split(r"[<>=~!;\[ ]", requirement)[0] for requirement in PROJECT["project"]["dependencies"]}
    assert {row[0] for row in rows("development", "Dependencies")} == names
