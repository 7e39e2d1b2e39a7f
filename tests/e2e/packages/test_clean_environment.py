"""Wheel and source archive, installed by pip into an empty environment that has nothing of the checkout."""

import json
import os
import re
import subprocess
import sys
import tomllib
import urllib.request
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tests.e2e.packages.conftest import ROOT
from tests.support.free_port import free_port
from tests.support.locked_versions import constraints
from tests.support.served_process import ServedProcess

pytestmark = pytest.mark.timeout(300)  # pip downloads what the package needs

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSIONED = sorted(set(PROJECT["scripts"]) - {"contrail-k8s-cni", "kubectl_complete-contrail"})
VARIABLES = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}


class CleanEnvironment:
    """A virtual environment below `work`, with one package and what it depends on, as the lock file pins it."""

    def __init__(self, work: Path, package: Path) -> None:
        self.work = work
        self.version = re.split("-|[.]tar", package.name)[1]
        self._binaries = work / "environment" / "bin"
        self._run(sys.executable, "-m", "venv", "environment")
        (work / "constraints.txt").write_text(constraints())
        options = ["--quiet", "--no-compile", "--only-binary", ":all:", "--no-binary", PROJECT["name"]]
        self.run("pip", "install", *options, "--constraint", "constraints.txt", str(package))

    def run(self, program: str, *arguments: str, **variables: str) -> str:
        """The output of an installed program. Raises CalledProcessError."""
        return self._run(str(self._binaries / program), *arguments, **variables)

    def program(self, name: str) -> str:
        """The path of an installed program."""
        return str(self._binaries / name)

    def _run(self, *command: str, **variables: str) -> str:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            cwd=self.work,
            env={**VARIABLES, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **variables},
            timeout=240,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module", params=["wheel", "sdist"])
def environment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CleanEnvironment:
    """An environment with the package."""
    package: Path = request.getfixturevalue(request.param)
    return CleanEnvironment(tmp_path_factory.mktemp(request.param), package)


def test_the_package_is_installed_with_what_it_needs_and_nothing_of_the_checkout(environment: CleanEnvironment) -> None:
    assert environment.run("pip", "check") == "No broken requirements found.\n"
    found = environment.run("python", "-c", "import manager, sys; print(manager.__file__); print(*sys.path)")
    assert str(ROOT) not in found


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the bill is that of the oldest supported Python")
def test_the_bill_of_materials_lists_what_pip_installs(environment: CleanEnvironment, packages: Path) -> None:
    (file,) = packages.glob("*.whl.cdx.json")
    listed = {each["name"]: each["version"] for each in json.loads(file.read_text())["components"]}
    found = json.loads(environment.run("pip", "list", "--format", "json"))
    installed = {canonicalize_name(each["name"]): each["version"] for each in found}
    assert listed == {name: installed[name] for name in installed.keys() - {PROJECT["name"], "pip", "setuptools"}}


@pytest.mark.parametrize("program", VERSIONED)
def test_the_program_starts(environment: CleanEnvironment, program: str) -> None:
    assert environment.run(program, "--version").split()[-1] == environment.version


def test_the_plugin_and_the_completion_for_kubectl_start(environment: CleanEnvironment) -> None:
    assert '"1.1.0"' in environment.run("contrail-k8s-cni", CNI_COMMAND="VERSION")
    assert "status" in environment.run("kubectl_complete-contrail", "").splitlines()


def test_an_embedded_node_runs_and_serves_its_web_page(environment: CleanEnvironment) -> None:
    listen, work = f"127.0.0.1:{free_port()}", environment.work
    (work / "manifests").mkdir()
    options = ["--manifests", "manifests", "--data-dir", "data", "--datapath", "none", "--listen", listen]
    command = ["env", "-C", str(work), environment.program("contrail-manager"), "--embedded", *options]
    node = ServedProcess(command, listen=listen, log=work / "node.log", environment=VARIABLES)
    node.start()
    try:
        with urllib.request.urlopen(f"http://{listen}/", timeout=10) as page:
            assert page.headers.get_content_type() == "text/html"
            assert b"<script" in page.read()
    finally:
        assert node.stop() == 0
