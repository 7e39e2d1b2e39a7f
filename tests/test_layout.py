"""The checkout holds together."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_every_package_of_the_distribution_is_there_and_says_what_it_is() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for package in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]:
        assert (ROOT / package / "__init__.py").read_text().startswith('"""'), package
