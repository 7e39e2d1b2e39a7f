"""The table of formats in `docs/operations.md`, compared with the versions in the code."""

import re

import pytest

from agent_api.node import installer_report
from cni_contrail.daemon import protocol
from cni_contrail.installer import report
from cni_contrail.state import records
from contrail_config.embedded import schema
from contrail_config.kubernetes import kinds
from tests.support.documentation import ROOT, rows

FORMATS = {
    "Custom resources": kinds.VERSION,
    "`store.sqlite`": schema.VERSION,
    "Attachment records": records._VERSION,
    "`installer.json`": report._VERSION,
    "Requests of the shim": protocol.VERSION,
}


@pytest.mark.parametrize("beginning", FORMATS)
def test_the_version_of_a_format_is_documented(beginning: str) -> None:
    (version,) = (row[1] for row in rows("operations", "Formats and their versions") if row[0].startswith(beginning))
    assert version.partition(",")[0].strip("`") == str(FORMATS[beginning])


def test_the_native_shim_has_the_version_of_the_daemon() -> None:
    (version,) = re.findall(r"#define \w*VERSION (\d+)", (ROOT / "cni_contrail/shim/protocol.h").read_text())
    assert int(version) == protocol.VERSION


def test_the_agent_reads_the_version_that_the_installer_writes() -> None:
    assert installer_report._VERSION == report._VERSION
