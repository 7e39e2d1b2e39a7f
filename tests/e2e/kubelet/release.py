"""Releases to install: that of the checkout, and the previous one."""

import os
from pathlib import Path
from typing import NamedTuple

from tests.support.kubectl.client import ROOT
from tests.support.previous_release import extract_previous, previous_commit

_IMAGE = "CONTRAIL_PREVIOUS_IMAGE"
_KUSTOMIZATION = """
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../deploy/overlays/standalone]
images:
  - {{name: contrail-multinet, newTag: {tag}}}
"""


class Release(NamedTuple):
    """The folders of its kustomization and of its definitions of custom resources, and the tag of its image."""

    overlay: Path
    definitions: Path
    tag: str

    @property
    def image(self) -> str:
        """Name of the image in the manifests."""
        return f"contrail-multinet:{self.tag}"


CHECKOUT = Release(ROOT / "deploy" / "overlays" / "standalone", ROOT / "deploy" / "crds", "0.1.0")


def previous_release(folder: Path) -> Release:
    """Writes the manifests of the previous release into a folder."""
    commit = previous_commit()
    extract_previous(folder, "deploy")
    (folder / "cluster").mkdir()
    (folder / "cluster" / "kustomization.yaml").write_text(_KUSTOMIZATION.format(tag=commit))
    return Release(folder / "cluster", folder / "deploy" / "crds", commit)


def previous_image() -> Path:
    """The archive of its image, which has the hash of the commit as its tag; `scripts/e2e` builds it."""
    return Path(os.environ[_IMAGE]).absolute()
