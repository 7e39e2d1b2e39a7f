"""Bills of materials (CycloneDX) of a release: they are valid, complete, and the same commit makes the same bytes."""

import hashlib
import json
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tests.e2e.packages.conftest import ROOT

LOCK = dict(re.findall(r"^([\w.-]+)==([^\s;\\]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE))


def bill(packages: Path, pattern: str) -> Any:
    (file,) = packages.glob(f"{pattern}.cdx.json")
    return json.loads(file.read_text())


def libraries(document: Any) -> dict[str, str]:
    """Versions of the Python libraries by name."""
    components = [each for each in document["components"] if each.get("purl", "").startswith("pkg:pypi/")]
    return {each["name"]: each["version"] for each in components}


def needs(document: Any, reference: str) -> set[str]:
    """What a component directly depends on."""
    (found,) = (each for each in document["dependencies"] if each["ref"] == reference)
    return set(found.get("dependsOn", ()))


def test_every_bill_is_valid(packages: Path) -> None:
    files = sorted(packages.glob("*.cdx.json"))
    assert len(files) == 2 + len([*packages.glob("contrail-k8s-cni-linux-*[0-9]")])
    for file in files:
        assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(file.read_text()) is None


def test_the_bill_of_the_wheel_says_what_needs_which_library(packages: Path) -> None:
    document = bill(packages, "*.whl")
    aiohttp, yarl = (f"pkg:pypi/{name}@{LOCK[name]}" for name in ("aiohttp", "yarl"))
    assert aiohttp in needs(document, "contrail-multinet")
    assert yarl in needs(document, aiohttp)
    assert yarl not in needs(document, "contrail-multinet")


@pytest.mark.parametrize("pattern", ["*.whl", "contrail-k8s-cni-linux-*[0-9]"])
def test_a_bill_names_the_digest_of_its_file(packages: Path, pattern: str) -> None:
    for file in packages.glob(pattern):
        (digest,) = bill(packages, file.name)["metadata"]["component"]["hashes"]
        assert digest == {"alg": "SHA-256", "content": hashlib.sha256(file.read_bytes()).hexdigest()}


def test_the_bill_of_a_shim_has_its_c_library(packages: Path) -> None:
    own = bill(packages, f"contrail-k8s-cni-linux-{platform.machine()}")
    assert linked(own) == {"musl-dev"}
    assert linked(bill(packages, "contrail-k8s-cni-linux-aarch64")) <= {"musl-dev", "libc6-dev-arm64-cross"}


def linked(document: Any) -> set[str]:
    """The libraries of a shim; its compiler is no part of it."""
    assert {each["name"].partition("-")[0] for each in document["components"] if "scope" in each} == {"gcc"}
    return {each["name"] for each in document["components"] if "scope" not in each}


def test_the_bill_of_the_image_has_its_base_its_plugins_and_the_libraries_on_its_python(packages: Path) -> None:
    document = bill(packages, "contrail-multinet-image-*")
    base = re.findall(r"^ARG BASE=(\S+)", (ROOT / "deploy/image/Containerfile").read_text(), re.MULTILINE)
    modules = (ROOT / "deploy/image/loopback/go.sum").read_text()
    built = dict(re.findall(r"^(\S+) (v[^\s/]+) h1:", modules, re.MULTILINE))
    loopback = f"pkg:golang/github.com/containernetworking/plugins@{built['github.com/containernetworking/plugins']}"
    assert needs(document, "image") == {*base, "contrail-multinet", "contrail-k8s-cni", loopback}
    listed = {each["name"]: each["version"] for each in document["components"] if "pkg:golang/" in each["bom-ref"]}
    assert listed.items() <= built.items()
    assert "github.com/vishvananda/netlink" in listed
    found = libraries(document)
    assert {"aiohttp", "msgspec", "pyyaml", "yarl"} <= found.keys()
    assert found.items() <= LOCK.items()


def test_the_same_files_make_the_same_bills(packages: Path, wheel: Path, tmp_path: Path) -> None:
    for file in (wheel, *packages.glob("contrail-k8s-cni-linux-*[0-9]")):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    subprocess.run([sys.executable, ROOT / "scripts" / "sbom.py", tmp_path], check=True, timeout=60)
    bills = sorted(tmp_path.glob("*.cdx.json"))
    assert [each.name for each in bills] == sorted(each.name for each in packages.glob("*.cdx.json"))
    for each in bills:
        assert each.read_bytes() == (packages / each.name).read_bytes()
