"""An embedded node per test, killed at its end."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.embedded_process import EmbeddedProcess


@pytest.fixture
def node(tmp_path: Path) -> Iterator[EmbeddedProcess]:
    """An embedded node that is not started yet."""
    node = EmbeddedProcess(tmp_path)
    yield node
    if node.process is not None:
        node.kill()
