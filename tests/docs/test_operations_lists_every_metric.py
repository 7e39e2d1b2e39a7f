"""The tables of metrics in `docs/operations.md`, compared with the names in the code."""

import re

import pytest

from tests.support.documentation import ROOT, code, rows

PACKAGES = {"manager": "manager", "agent": "agent_api", "daemon": "cni_contrail/daemon"}
PREFIXES = {"manager": "contrail_manager_", "agent": "contrail_agent_", "daemon": "contrail_cnid_"}


@pytest.mark.parametrize("program", PACKAGES)
def test_every_metric_is_documented_and_no_other(program: str) -> None:
    sources = (path.read_text() for path in (ROOT / PACKAGES[program]).rglob("*.py"))
    measured = {name for text in sources for name in re.findall(rf'"({PREFIXES[program]}[a-z_]+)"', text)}
    documented = rows("operations", f"{program.capitalize()} metrics")
    assert {code(row[0])[0] for row in documented} == measured
    assert all(all(row) for row in documented)
