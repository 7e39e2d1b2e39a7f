"""Conformance: schemathesis derives valid and invalid requests from `/openapi.json` and checks the responses.

`schemathesis.toml` selects the checks and says why others are off.
"""

import subprocess
import sys
from pathlib import Path

from tests.agent_api.agent_process import started

CONFIGURATION = Path(__file__).with_name("schemathesis.toml")


def test_responses_conform_to_the_document(tmp_path: Path) -> None:
    with started(tmp_path) as agent:
        run = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIGURATION)),
                *("run", f"{agent.url}/openapi.json", "--no-color"),
            ],
            cwd=tmp_path,  # it writes a cache to the working directory
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "21 selected / 21 total" in run.stdout
