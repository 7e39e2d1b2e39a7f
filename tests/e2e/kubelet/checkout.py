"""Checkout of a reader of the pages on installation and operation, with the files that these say, and their commands.

Nodes import the image, which `scripts/image` has built: the reader's `podman build` and `podman push` are not run.
"""

import re
import shutil
from pathlib import Path

from tests.e2e.kubelet.release import CHECKOUT
from tests.support.documentation import block, blocks
from tests.support.kubectl.client import ROOT, Kubectl

_REGISTRY = "registry.example"
IMAGE = f"{_REGISTRY}/{CHECKOUT.image}"
"""Name of the image on the nodes, as in the kustomization of the page."""

_PAGES = ("install", "operations")
_FOLDERS = ("deploy", "scripts")
_FILE = re.compile(r"# ((?:cluster|uninstall)/\S+)\n")


class Checkout:
    """Commands run in `folder`, with `kubectl`."""

    def __init__(self, folder: Path, kubectl: Kubectl) -> None:
        self._folder = folder
        self._kubectl = kubectl
        for name in _FOLDERS:
            shutil.copytree(ROOT / name, folder / name)
        for text in (each for page in _PAGES for each in blocks(page, language="yaml")):
            if named := _FILE.match(text):
                file = folder / named[1]
                file.parent.mkdir(exist_ok=True)
                file.write_text(_with_registry(text))

    def run(self, page: str, beginning: str) -> None:
        """Runs the block of commands of a page that begins so."""
        self.run_script(documented(page, beginning))

    def run_script(self, script: str) -> None:
        """Runs commands."""
        self._kubectl.shell(f"cd {self._folder}\n{_with_registry(script)}")


def documented(page: str, beginning: str) -> str:
    """The block of commands of a page that begins so."""
    return block(page, beginning, language="sh")


def _with_registry(text: str) -> str:
    return text.replace("REGISTRY", _REGISTRY)
