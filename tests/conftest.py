"""Fixtures for every folder of tests."""

import logging
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from contrail_config.embedded.store import SqliteStore
from tests.support.contrail_api.server import ContrailApi, serve_contrail_api
from tests.support.contrail_callers import Caller, caller_of
from tests.support.netns import Netns

# Hosts are shared and tests run in parallel, so how long an example takes says nothing.
settings.register_profile("no deadline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no deadline")


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Groups the tests that load or measure the whole machine: of one group, pytest-xdist runs one at a time.

    Leaves out the tests of what an engine lacks, on this engine. Coverage is measured neither in property tests nor in
    those of the machine: tracing makes them three times as long, and others reach the same lines.
    """
    for item in items:
        if item.get_closest_marker("machine"):
            item.add_marker(pytest.mark.xdist_group("machine"))
        if item.get_closest_marker("machine") or _is_property_test(item):
            item.add_marker(pytest.mark.no_cover)
    left_out = [item for item in items if _lacks(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not _lacks(item)]


def _is_property_test(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and is_hypothesis_test(item.obj)


def _lacks(item: pytest.Item) -> bool:
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    engine = parameters.get("engine")
    return engine is not None and any(mark.args[0] == engine for mark in item.iter_markers("lacking"))


@pytest.fixture(scope="session", autouse=True)
def groups_take_effect(request: pytest.FixtureRequest) -> None:
    """Fails if pytest-xdist, in a run by groups, has not seen the groups: it notes them in the tests' IDs."""
    if request.config.getoption("loadgroup", default=False):
        ungrouped = [each for each in request.session.items if each.get_closest_marker("xdist_group")]
        ungrouped = [each for each in ungrouped if "@" not in each.nodeid.rpartition("]")[2]]
        assert ungrouped == [], f"{len(ungrouped)} tests run outside of their groups"


@pytest.fixture(scope="session", autouse=True)
def folders_of_this_run(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Has folders that tests make by themselves stand in the run's own, which pytest removes if the run was killed."""
    tempfile.tempdir = str(tmp_path_factory.getbasetemp())


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """An embedded store, open until the test ends."""
    store = await SqliteStore.open(tmp_path / "store" / "config.db")
    yield store
    await store.close()


@pytest.fixture
async def contrail() -> AsyncIterator[ContrailApi]:
    """A double of the Contrail API server."""
    async with serve_contrail_api() as contrail:
        yield contrail


@pytest.fixture
async def caller(contrail: ContrailApi) -> AsyncIterator[Caller]:
    """Reads and writes on the Contrail API server as others do, such as the site's provisioning."""
    async with caller_of(contrail.url) as caller:
        yield caller


@pytest.fixture
def make_netns() -> Iterator[Callable[[str], Netns]]:
    """Makes throw-away network namespaces (`make_netns("node")`), all removed after the test."""
    made: list[Netns] = []

    def make(kind: str) -> Netns:
        made.append(Netns(kind))
        return made[-1]

    yield make
    for namespace in made:
        namespace.delete()


@pytest.fixture
def restored_logging() -> Iterator[None]:
    """Undoes what a command does to the log: later tests would write to the standard error of this one."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
