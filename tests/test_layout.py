"""Layout of the checkout and of the distribution."""

import tomllib
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parent.parent
WHEEL = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
PACKAGES = WHEEL["packages"]


@pytest.fixture(scope="module")
def wheel_files(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    return set(zipfile.ZipFile(wheel).namelist())


def test_every_package_of_the_wheel_exists_and_has_a_docstring() -> None:
    for package in PACKAGES:
        assert (ROOT / package / "__init__.py").read_text().startswith('"""'), package


def test_the_wheel_marks_every_package_as_typed(wheel_files: set[str]) -> None:
    assert {f"{package}/py.typed" for package in PACKAGES} <= wheel_files


def test_the_wheel_holds_our_packages_and_nothing_else(wheel_files: set[str]) -> None:
    assert {name.split("/")[0] for name in wheel_files if ".dist-info/" not in name} == set(PACKAGES)


def test_the_demo_is_not_in_the_wheel(wheel_files: set[str]) -> None:
    assert (ROOT / "demo" / "__main__.py").exists()
    assert not [name for name in wheel_files if "demo" in name.split("/")]
