"""`scripts/manifests`: the manifests of a release have the image by its digest."""

import subprocess
from pathlib import Path

import pytest

from tests.e2e.kubernetes.overlays.test_documented_overlays import images
from tests.support.kubectl.client import ALL_OVERLAYS, OVERLAYS, ROOT, built, templated

IMAGE = f"registry.example:5000/team/contrail-multinet@sha256:{'0123456789abcdef' * 4}"


def write(image: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "scripts" / "manifests"), image, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize("overlay", ALL_OVERLAYS)
def test_every_overlay_has_the_image_by_its_digest(tmp_path: Path, overlay: str) -> None:
    assert write(IMAGE, tmp_path / "release").returncode == 0
    pinned = built(tmp_path / "release" / "overlays" / overlay)
    assert {each for each in images(pinned) if "multus-cni" not in each} == {IMAGE}
    assert len(pinned) == len(built(OVERLAYS / overlay))


def test_the_release_has_what_monitors_it(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    assert write(IMAGE, folder).returncode == 0
    (folder / "monitored").mkdir()
    text = "resources: [../overlays/standalone]\ncomponents: [../monitoring]\n"
    (folder / "monitored" / "kustomization.yaml").write_text(text)
    assert "PrometheusRule" in {item["kind"] for item in built(folder / "monitored")}


def test_the_uninstallation_has_the_image_by_its_digest(tmp_path: Path) -> None:
    assert write(IMAGE, tmp_path / "release").returncode == 0
    assert images(built(tmp_path / "release" / "uninstall")) == {IMAGE}


def test_the_chart_has_the_image_by_its_digest(tmp_path: Path) -> None:
    assert write(IMAGE, tmp_path / "release").returncode == 0
    assert images(templated(tmp_path / "release" / "helm" / "contrail-multinet")) == {IMAGE}


@pytest.mark.parametrize("image", ["", "contrail-multinet:0.1.0", "contrail-multinet@sha256:0123"])
def test_an_image_without_a_digest_is_rejected(tmp_path: Path, image: str) -> None:
    done = write(image, tmp_path / "release")
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "not pinned by digest" in done.stderr


def test_an_existing_folder_is_kept(tmp_path: Path) -> None:
    done = write(IMAGE, tmp_path)
    assert done.returncode == 1
    assert "already exists" in done.stderr
