"""Manifests, chart, scripts and pages name one release of the image, which is the last one or the next one."""

import re
import runpy
from pathlib import Path

import yaml
from packaging.version import Version

from tests.support.applied_manifests import MANIFESTS, documents

ROOT = MANIFESTS.parents[1]
CHART = ROOT / "deploy" / "helm" / "Chart.yaml"
IMAGE_TAG = re.compile(r"(?:contrail-multinet(?::|, newTag: )|VERSION=)(\d+\.\d+\.\d+)")


def image_tags() -> set[str]:
    """The tags of the image in the manifests."""
    workloads = [item for item in documents(MANIFESTS) if item["kind"] in ("Deployment", "DaemonSet")]
    pods = [item["spec"]["template"]["spec"] for item in workloads]
    images = [each["image"] for pod in pods for each in pod.get("initContainers", []) + pod["containers"]]
    assert {image.partition(":")[0] for image in images} == {"contrail-multinet"}
    return {image.partition(":")[2] for image in images}


def test_manifests_have_the_release_of_the_checkout_or_a_later_one() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "version.py"))
    version, last = script["version"](), script["last_release"]()
    (tag,) = image_tags()
    if last == version:
        assert tag == last
    assert Version(tag) >= Version(last or script["FIRST"])


def test_chart_scripts_and_pages_name_the_same_release() -> None:
    chart = yaml.safe_load(CHART.read_text())
    assert {chart["version"], chart["appVersion"]} == image_tags()
    assert {tag for file in shipped() for tag in IMAGE_TAG.findall(file.read_text())} == image_tags()


def shipped() -> list[Path]:
    """Files that may name the image."""
    folders = ("deploy", "docs", "scripts")
    return [ROOT / "README.md", *(path for name in folders for path in (ROOT / name).rglob("*") if is_text(path))]


def is_text(path: Path) -> bool:
    return path.is_file() and path.suffix in ("", ".md", ".yaml")
