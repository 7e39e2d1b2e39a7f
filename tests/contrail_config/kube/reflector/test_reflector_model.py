"""Random histories of objects, lists, cuts and failures: the cache converges to the server's objects.

The changes yielded on the way are consistent for each object: it is added, modified and deleted, with one uid, once
each.
"""

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from contrail_config.kube.client import connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.object_cache import Key
from contrail_config.kube.reflector import Reflector, ReflectorTimings
from tests.support.config_maps import CONFIG_MAPS
from tests.support.fake_apiserver import kinds
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.status_errors import StatusError
from tests.support.recorded_reflector import RecordedReflector, eventually, record_reflector

DEADLINE = 20.0
TIMINGS = ReflectorTimings(first_pause=0.001, longest_pause=0.01, silence=0.1, short_watch=0.0, page_length=3)
NAMES = [f"c{number}" for number in range(8)]
LONG_HISTORY = 1000
DECODABLE: list[Any] = ["one", "two", "three"]
UNDECODABLE: list[Any] = [7, ["list"]]

T = TypeVar("T")


class Server(RuleBasedStateMachine):
    """Changes the server's objects behind its API, atomically, while a reflector follows them."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = contextlib.AsyncExitStack()
        self.server = FakeApiServer()
        self.followed: RecordedReflector | None = None

    def run(self, awaitable: Awaitable[T]) -> T:
        async def waited() -> T:
            async with asyncio.timeout(DEADLINE):
                return await awaitable

        return self.runner.run(waited())

    @initialize(bookmarks=st.sampled_from([0.01, 60.0]), names=st.sets(st.sampled_from(NAMES)))
    def start(self, bookmarks: float, names: set[str]) -> None:
        for name in names:
            self.put(name, "one")
        self.server.bookmark_interval = bookmarks
        self.run(self._start())

    async def _start(self) -> None:
        await self.server.start()
        client = await self.stack.enter_async_context(connect(ClientConfig(self.server.url)))
        self.followed = await self.stack.enter_async_context(
            record_reflector(Reflector(client, CONFIG_MAPS, timings=TIMINGS))
        )

    @rule(name=st.sampled_from(NAMES), value=st.sampled_from(DECODABLE + UNDECODABLE))
    def put(self, name: str, value: Any) -> None:
        self.server.put(kinds.CONFIG_MAPS, name, data={"key": value})

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        if ("default", name) in self.objects():
            self.server.remove(kinds.CONFIG_MAPS, name)

    @rule(name=st.sampled_from(NAMES), value=st.sampled_from(DECODABLE))
    def recreate(self, name: str, value: str) -> None:
        self.delete(name)
        self.put(name, value)

    @rule(steps=st.integers(1, 30))
    def let_pass(self, steps: int) -> None:
        async def pass_by() -> None:
            for _ in range(steps):
                await asyncio.sleep(0)

        self.run(pass_by())

    @rule()
    def cut(self) -> None:
        self.server.cut_watches()

    @rule(after=st.lists(st.integers(0, 400), max_size=3), cleanly=st.booleans())
    def cut_the_next_watches(self, after: list[int], cleanly: bool) -> None:
        self.server.faults.cuts = after
        self.server.faults.cut_cleanly = cleanly

    @rule()
    def end(self) -> None:
        self.server.end_watches()

    @rule(code=st.sampled_from([500, 410]))
    def fail(self, code: int) -> None:
        self.server.fail_watches(StatusError(code, "", "failed on purpose"))

    @rule()
    def forget_history(self) -> None:
        self.server.forget_history()

    @rule()
    def forget_history_between_watches(self) -> None:
        self.server.storage.compact()
        self.server.cut_watches()

    @precondition(lambda self: self.server.storage.revision > LONG_HISTORY)
    @rule()
    def empty(self) -> None:
        """A history that started over cannot be distinguished from the old one once it is as long."""
        self.server.empty_storage()
        self.server.cut_watches()

    @rule(verb=st.sampled_from(["list", "watch"]), code=st.sampled_from([401, 403, 404, 410, 429, 500, 504]))
    def refuse(self, verb: str, code: int) -> None:
        self.server.faults.reject(code, verb=verb)

    @rule(repeated=st.booleans(), piece=st.sampled_from([None, 1, 50]), silent=st.booleans())
    def set_faults(self, repeated: bool, piece: int | None, silent: bool) -> None:
        self.server.faults.repeated = repeated
        self.server.faults.piece = piece
        self.server.faults.silent = silent

    @rule(down=st.booleans())
    def restart(self, down: bool) -> None:
        self.run(self.server.stop())
        if down:
            self.let_pass(30)
        self.run(self.server.start())

    @rule(names=st.lists(st.sampled_from(NAMES), min_size=2, max_size=6))
    def reorder(self, names: list[str]) -> None:
        """Sends events in the wrong order, in one chunk: cut in between, their order is unknown."""
        self.converge()
        self.server.faults.swapped = True
        for name in names:
            self.delete(name) if name in names[: len(names) // 2] else self.put(name, "reordered")
        self.converge()
        self.server.faults.swapped = False

    @rule()
    def converge(self) -> None:
        """Removes all faults and waits until the cache is up to date."""
        self.server.faults.cuts.clear()
        self.server.faults.rejections.clear()
        self.server.faults.silent = False
        assert self.followed is not None
        self.run(eventually(self.is_up_to_date, self.followed.objects))
        assert self.followed.objects == dict(self.followed.reflector.objects)

    def is_up_to_date(self, view: dict[Key, Any]) -> bool:
        """An undecodable object may be missing, or have an earlier state of the same uid."""
        existing = self.objects()
        return view.keys() <= existing.keys() and all(
            self.is_known(item, view.get(key)) for key, item in existing.items()
        )

    def is_known(self, item: dict[str, Any], known: Any) -> bool:
        metadata = item["metadata"]
        if item["data"]["key"] in UNDECODABLE:
            return known is None or known.metadata.uid == metadata["uid"]
        return known is not None and known.metadata.resource_version == metadata["resourceVersion"]

    def objects(self) -> dict[Key, dict[str, Any]]:
        return self.server.storage.objects(kinds.CONFIG_MAPS)

    def teardown(self) -> None:
        if self.followed is not None:
            self.converge()
        self.run(self.stack.aclose())
        self.run(self.server.stop())
        self.runner.close()


def test_the_cache_converges_to_the_server() -> None:
    run_state_machine_as_test(Server, settings=settings(max_examples=40, stateful_step_count=30))
