"""The table of environment variables in `docs/configuration.md`, compared with the names in the code."""

import re

from tests.support.documentation import ROOT, code, rows

PACKAGES = (
    "agent_api",
    "cni_contrail",
    "contrail_config",
    "contrail_embedded",
    "contrail_service",
    "contrailctl",
    "manager",
)
VARIABLE = re.compile(r'"((?:CONTRAIL|KUBE|NODE)_?[A-Z_]+|[A-Z]+_PROXY)"')


def test_every_variable_is_documented_and_no_other() -> None:
    sources = [path for package in PACKAGES for end in ("py", "c") for path in (ROOT / package).rglob(f"*.{end}")]
    found = {name for path in sources for name in VARIABLE.findall(path.read_text())}
    assert {code(row[0])[0] for row in rows("configuration", "Environment")} == found - OF_KUBERNETES


OF_KUBERNETES = {"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBERNETES_EXEC_INFO"}
"""Set by kubelet for pods in a cluster, and by a client for the command that gives it credentials."""
