"""An embedded node whose manager requires a token."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests.support.embedded_process import EmbeddedProcess
from tests.support.manifests import pod, write

TOKEN = "very-secret"


@contextlib.contextmanager
def running_guarded_node(work: Path) -> Iterator[EmbeddedProcess]:
    """Runs a node with the pod `demo/web` until the context is left. Its token is in `work/token`."""
    token, configuration = work / "token", work / "manager.yaml"
    token.write_text(f"{TOKEN}\n")
    configuration.write_text(f"api-access: {{token-file: {token}}}\n")
    node = EmbeddedProcess(work, options=["--config", str(configuration)])
    write(node.manifests / "pods.yaml", pod("web"))
    node.start()
    try:
        yield node
    finally:
        node.kill()
