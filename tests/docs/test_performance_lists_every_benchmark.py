"""`docs/performance.md`, compared with the benchmarks and options of `scripts/bench`."""

import re
import subprocess
import sys

import pytest

from tests.support.documentation import ROOT, code, page, rows


@pytest.fixture(scope="module")
def usage() -> str:
    command = [sys.executable, "-m", "tests.bench", "--help"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def test_every_benchmark_is_documented_and_no_other(usage: str) -> None:
    choices = re.search(r"--only \{([^}]*)\}", usage)
    assert choices
    assert {code(row[0])[0] for row in rows("performance", "Performance")} == set(re.split(r",\s*", choices[1]))


def test_every_option_is_mentioned(usage: str) -> None:
    assert {option for option in re.findall(r"--[a-z]+", usage) if option not in page("performance")} == {"--help"}
