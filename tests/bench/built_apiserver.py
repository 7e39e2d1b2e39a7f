"""Real API server for benchmarks, built first if the environment names no binaries."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.real_apiserver.server import BINARIES, ApiServer, serve_real_apiserver


def build_apiserver() -> None:
    """Builds it, and names its binaries in the environment, unless that names some."""
    if BINARIES not in os.environ:
        built = subprocess.run(["scripts/kube-apiserver"], check=True, stdout=subprocess.PIPE, text=True)
        os.environ[BINARIES] = built.stdout.strip()


@contextmanager
def built_apiserver() -> Iterator[ApiServer]:
    """Yields a server that runs until the context is left."""
    build_apiserver()
    with tempfile.TemporaryDirectory() as work, serve_real_apiserver(Path(work)) as server:
        yield server
