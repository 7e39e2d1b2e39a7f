#!/usr/bin/env python3
"""Software bills of materials (CycloneDX 1.6, JSON) of a release: of the wheel, of each native shim and of the image.

`scripts/package` runs `scripts/sbom.py FOLDER`. It writes `*.cdx.json` beside the wheel and the shims in the folder.

- Wheel: the libraries that pip installs with it on the oldest supported Python, at the versions of `requirements.lock`.
- Shim: the C library that is linked into it, and its compiler (scope `excluded`), both by their Debian packages.
- Image: its base, the libraries on the Python of the base, the shim, and the plugin `loopback` with its Go modules. It
  does not list the packages of the base, nor the versions of the C library and of Go that the build of the image uses:
  these depend on the digest of the base.

The same commit gives the same bytes: the time is SOURCE_DATE_EPOCH, else that of the commit, else that of the build.
"""

import hashlib
import os
import platform
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.contrib.this.builders import this_component
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import License
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

_ROOT = Path(__file__).resolve().parent.parent
_PROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
_SHIM = "contrail-k8s-cni"
_LICENSES = {"musl": "MIT", "libc6": "LGPL-2.1-or-later"}  # of C libraries, by how the names of their packages begin


class Bill:
    """The bill of one file or image: its subject, and what that consists of."""

    def __init__(self, subject: Component) -> None:
        self.subject = subject
        self._bom = Bom(serial_number=uuid5(NAMESPACE_URL, f"{subject.name} {subject.version} {subject.type}"))
        self._bom.metadata.timestamp = _time()
        self._bom.metadata.tools.components.add(this_component())
        self._bom.metadata.component = subject

    def add(self, owner: Component, parts: Iterable[Component]) -> None:
        """Adds the parts, on which the owner depends."""
        parts = list(parts)
        self._bom.components.update(parts)
        self._bom.register_dependency(owner, parts)

    def add_libraries(self, owner: Component, python: str) -> None:
        """Adds the libraries that the package needs on a version of Python such as `3.13`, with what these need."""
        needs = {"": _needed(_PROJECT["dependencies"], python)}
        waiting = [*needs[""]]
        while waiting:
            name = waiting.pop()
            if name not in needs:
                needs[name] = _needed(metadata.requires(name) or (), python)
                waiting += needs[name]
        components = {name: _library(name) for name in needs if name} | {"": owner}
        for name, needed in needs.items():
            self.add(components[name], (components[each] for each in needed))

    def write(self, path: Path) -> None:
        """Writes the bill as JSON."""
        path.write_text(JsonV1Dot6(self._bom).output_as_string(indent=2) + "\n")


def write_bills(folder: Path) -> None:
    """Writes the bills of the wheel and the shims in the folder, and that of the image.

    Raises ValueError if there is not one wheel, CalledProcessError if Debian's package of a library is unknown.
    """
    (wheel,) = folder.glob("*.whl")
    version = str(parse_wheel_filename(wheel.name)[1])

    package = Bill(_ours(_PROJECT["name"], version, wheel))
    package.add_libraries(package.subject, _PROJECT["requires-python"].removeprefix(">="))
    package.write(folder / f"{wheel.name}.cdx.json")

    for file in sorted(folder.glob(f"{_SHIM}-linux-*")):
        shim = Bill(_ours(_SHIM, version, file))
        shim.add(shim.subject, _linked(file.name.rpartition("-")[2]))
        shim.write(folder / f"{file.name}.cdx.json")

    image = Bill(Component(type=ComponentType.CONTAINER, name=_PROJECT["name"], version=version, bom_ref="image"))
    base, python = _base()
    installed, plugin = _ours(_PROJECT["name"], version, wheel), _ours(_SHIM, version)
    (loopback, *modules) = _go_modules()
    image.add(image.subject, (base, installed, plugin, loopback))
    image.add(loopback, modules)
    image.add_libraries(installed, python)
    libc = Component(type=ComponentType.LIBRARY, name="musl", bom_ref="musl", licenses=_license(_LICENSES["musl"]))
    image.add(plugin, (libc,))
    image.write(folder / f"{_PROJECT['name']}-image-{version}.cdx.json")


def _ours(name: str, version: str, file: Path | None = None) -> Component:
    """A component of the project, with the digest of its file."""
    component = Component(type=ComponentType.APPLICATION, name=name, version=version, bom_ref=name)
    component.licenses.update(_license(_PROJECT["license"]))
    if file:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        component.hashes.add(HashType(alg=HashAlgorithm.SHA_256, content=digest))
    return component


def _needed(requirements: Iterable[str], python: str) -> list[str]:
    """The names of the requirements that hold on Linux with a version of Python."""
    environment = {"python_version": python, "python_full_version": f"{python}.0", "extra": ""}
    parsed = [Requirement(each) for each in requirements]
    held = [each for each in parsed if not each.marker or each.marker.evaluate(environment)]
    return sorted(canonicalize_name(each.name) for each in held)


def _library(name: str) -> Component:
    """A library, as it is installed in the environment of the checkout."""
    version, described = metadata.version(name), metadata.metadata(name)
    purl = PackageURL("pypi", None, name, version)
    keys = [key for key in ("License-Expression", "License") if key in described]
    licenses = _license(described[keys[0]] if keys else None)
    return Component(
        type=ComponentType.LIBRARY, name=name, version=version, purl=purl, bom_ref=str(purl), licenses=licenses
    )


def _license(named: str | None) -> list[License]:
    return [LicenseFactory().make_from_string(named)] if named else []


def _linked(machine: str) -> list[Component]:
    """The C library in the shim for a machine such as `aarch64`, and the compiler."""
    if machine == platform.machine():
        compiler, libc = "gcc", f"/usr/lib/{machine}-linux-musl/libc.a"
    else:
        compiler = f"{machine}-linux-gnu-gcc"
        libc = _output(compiler, "-print-file-name=libc.a")
    path = _output("sh", "-c", f"command -v {compiler}")
    return [_package_of(libc), _package_of(path, ComponentScope.EXCLUDED)]


def _package_of(file: str, scope: ComponentScope | None = None) -> Component:
    """The Debian package that a file belongs to. Raises CalledProcessError if there is none."""
    owner = _output("dpkg-query", "--search", os.path.realpath(file)).partition(": ")[0]
    fields = "${Package} ${Version} ${Architecture}"
    name, version, architecture = _output("dpkg-query", "--show", f"--showformat={fields}", owner).split()
    purl = PackageURL("deb", "debian", name, version, {"arch": architecture})
    named = next((text for start, text in _LICENSES.items() if name.startswith(start)), None)
    return Component(
        type=ComponentType.LIBRARY if named else ComponentType.APPLICATION,
        name=name,
        version=version,
        purl=purl,
        bom_ref=str(purl),
        scope=scope,
        licenses=_license(named),
    )


def _base() -> tuple[Component, str]:
    """The base of the image, and its version of Python."""
    text = (_ROOT / "deploy" / "image" / "Containerfile").read_text()
    (name, tag) = re.findall(r"^ARG BASE=(\S+):(\S+)$", text, re.MULTILINE)[0]
    python = tag.partition("-")[0]
    return Component(type=ComponentType.CONTAINER, name=name, version=tag, bom_ref=f"{name}:{tag}"), python


def _go_modules() -> list[Component]:
    """The Go module of the plugin `loopback`, and those that it needs."""
    text = (_ROOT / "deploy" / "image" / "loopback" / "go.mod").read_text()
    (own,) = re.findall(r"^tool (\S+)/plugins/main/loopback$", text, re.MULTILINE)
    versions = dict(re.findall(r"^\t(\S+) (v\S+)", text, re.MULTILINE))
    components = []
    for name in (own, *sorted(versions.keys() - {own})):
        namespace, _, base = name.rpartition("/")
        purl = PackageURL("golang", namespace, base, versions[name])
        library = ComponentType.LIBRARY
        components.append(Component(type=library, name=name, version=versions[name], purl=purl, bom_ref=str(purl)))
    return components


def _time() -> datetime:
    """When the commit was made, or what SOURCE_DATE_EPOCH says; now if both are unknown."""
    if stated := os.environ.get("SOURCE_DATE_EPOCH"):
        return datetime.fromtimestamp(int(stated), UTC)
    try:
        return datetime.fromtimestamp(int(_output("git", "-C", str(_ROOT), "log", "-1", "--format=%ct")), UTC)
    except (OSError, subprocess.CalledProcessError):
        return datetime.now(UTC)


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    write_bills(Path(sys.argv[1]))
