"""Switch of a cluster to Multus and back, by the commands of `docs/multus.md`."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e.kubelet.cluster import Cluster
from tests.support.documentation import blocks
from tests.support.kubectl.client import ROOT

_PAGE = "multus"
_KUSTOMIZATION = "# cluster/kustomization.yaml"
_APPLY = "kubectl apply -k cluster"
_MOVE = "POD="
_DELETE = "kubectl -n kube-system delete daemonset"
_STANDALONE = "resources: [../deploy/overlays/standalone]\n"
_REGISTRY = "newName: REGISTRY/contrail-multinet, "
_EXAMPLE = ROOT / "deploy" / "multus" / "thin" / "00-multus.conflist"


class Multus(NamedTuple):
    """A kind of Multus: the names of its overlay and its ConfigMap, and of the file that it generates for runtimes.

    `example` is the content of that file, if the project has one.
    """

    overlay: str
    config_map: str
    configuration: str
    example: Any = None


THICK = Multus("multus-thick", "multus-daemon-config", "00-multus.conf")
"""The kind that the commands of the page are for; the text around them says what differs."""

THIN = Multus("multus-thin", "multus-cni-config", _EXAMPLE.name, example=json.loads(_EXAMPLE.read_text()))


class Switch:
    """The commands for a kind of Multus, in a checkout whose folder `cluster` has the kustomization."""

    def __init__(self, cluster: Cluster, checkout: Path, multus: Multus) -> None:
        self.multus = multus
        self._cluster = cluster
        self._checkout = checkout
        self._kustomization = checkout / "cluster" / "kustomization.yaml"
        self._kustomization.parent.mkdir(exist_ok=True)

    def to_multus(self) -> None:
        """Moves all nodes."""
        kustomization = _replaced(_block(_KUSTOMIZATION, language="yaml"), THICK.overlay, self.multus.overlay)
        self._configure(_replaced(kustomization, _REGISTRY, ""))
        self._move_nodes("multus=yes")

    def to_standalone(self) -> None:
        """Moves all nodes back, and deletes what belonged to Multus."""
        self._configure(_STANDALONE)
        self._move_nodes("multus-\n")
        self._run(_replaced(_block(_DELETE), THICK.config_map, self.multus.config_map))

    def _configure(self, kustomization: str) -> None:
        self._kustomization.write_text(kustomization)
        self._run(_block(_APPLY))

    def _move_nodes(self, label: str) -> None:
        for node in self._cluster.nodes:
            self._run(_replaced(_block(_MOVE, containing=label), "NODE", node.name))

    def _run(self, script: str) -> None:
        self._cluster.kubectl.shell(f"cd {self._checkout}\n{script}")


def _replaced(block: str, old: str, new: str) -> str:
    assert old in block, block
    return block.replace(old, new)


def _block(beginning: str, *, containing: str = "", language: str = "sh") -> str:
    """The block of the page that begins so and contains a text."""
    (found,) = (each for each in blocks(_PAGE, language=language) if each.startswith(beginning) and containing in each)
    return found
