"""Time lines of pods for the API: few are read at a time, and the virtual machine is looked for by uid first."""

import asyncio

import pytest

from contrail_config.kube.client import KubeClient
from contrail_config.kube.selector import Selector
from manager.kubernetes.pod_trace import AT_ONCE, PodTraces


class _Reads:
    """A client whose lists end when `release` is set."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.running = 0
        self.most = 0
        self.total = 0

    async def list_each(self, _resource: object, _selector: Selector) -> list[object]:
        self.total += 1
        self.running += 1
        self.most = max(self.most, self.running)
        await self.release.wait()
        self.running -= 1
        return []


async def test_few_time_lines_are_read_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = _Reads()
    client = KubeClient.__new__(KubeClient)
    monkeypatch.setattr(client, "list_each", reads.list_each)
    traces = PodTraces(client)
    asked = [asyncio.create_task(traces.read("blue", f"pod-{number}")) for number in range(10)]
    for _ in range(20):
        await asyncio.sleep(0)
    assert reads.running == AT_ONCE
    reads.release.set()
    assert await asyncio.gather(*asked) == [None] * 10
    assert (reads.most, reads.total) == (AT_ONCE, 10)


async def test_a_name_that_no_pod_has_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = _Reads()
    client = KubeClient.__new__(KubeClient)
    monkeypatch.setattr(client, "list_each", reads.list_each)
    assert await PodTraces(client).read("blue", "a,metadata.namespace=other") is None
    assert reads.total == 0
