"""A directory of scripted plugins, and a runtime that uses it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cni_contrail.runtime.chain import Runtime
from tests.support.scripted_plugins import Plugins


@pytest.fixture
def plugins(tmp_path: Path) -> Plugins:
    directory = tmp_path / "bin"
    directory.mkdir()
    return Plugins(directory)


@pytest.fixture
def make_runtime(plugins: Plugins, tmp_path: Path) -> Callable[..., Runtime]:
    def make(**settings: Any) -> Runtime:
        return Runtime([str(plugins.directory)], cache_dir=str(tmp_path / "cache"), **settings)

    return make


@pytest.fixture
def runtime(make_runtime: Callable[..., Runtime]) -> Runtime:
    return make_runtime()
