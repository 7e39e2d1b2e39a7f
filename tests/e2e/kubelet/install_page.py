"""Commands of the page on installation that install on a cluster, as a reader runs them in a checkout.

The image is imported instead of pushed to a registry, so `podman` is not called: `scripts/image` builds it.
"""

import re
import shutil
from pathlib import Path

from tests.support.documentation import blocks
from tests.support.kubectl.client import ROOT, Kubectl

REGISTRY = "registry.example"
IMAGE = f"{REGISTRY}/contrail-multinet:0.1.0"
"""Name of the image on the nodes, as in the kustomization of the page."""

_PAGE = "install"
_FILE = re.compile(r"# (cluster/\S+)\n")
_APPLY = "kubectl apply -k cluster"
_CHART = "scripts/helm-chart"


def install(kubectl: Kubectl, checkout: Path) -> str:
    """Writes the files of the page, installs, waits until all of it runs, and returns what the commands print."""
    shutil.copytree(ROOT / "deploy", checkout / "deploy")
    for block in blocks(_PAGE, language="yaml"):
        if named := _FILE.match(block):
            file = checkout / named[1]
            file.parent.mkdir(exist_ok=True)
            file.write_text(_with_registry(block))
    return kubectl.shell(f"cd {checkout}\n{_commands(_APPLY)}")


def install_by_helm(kubectl: Kubectl) -> str:
    """Writes the chart in the checkout of the tests and installs it; returns what the commands print."""
    return kubectl.shell(_commands(_CHART))


def _commands(beginning: str) -> str:
    (found,) = (block for block in blocks(_PAGE, language="sh") if block.startswith(beginning))
    return _with_registry(found)


def _with_registry(text: str) -> str:
    return text.replace("REGISTRY", REGISTRY)
