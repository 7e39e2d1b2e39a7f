"""OtherWriters: pods of the cluster that another program wrote, and no others."""

import asyncio
from typing import Any

import pytest

from contrail_config.errors import StoreError
from contrail_config.vnc.other_writers import OtherWriters

THEIRS = {"owner": "k8s", "cluster": "k8s"}


def item(uuid: str, **pairs: str) -> dict[str, Any]:
    listed = [{"key": key, "value": value} for key, value in pairs.items()]
    return {"uuid": uuid, "fq_name": [f"name-{uuid}"], "annotations": {"key_value_pair": listed}}


@pytest.mark.parametrize(
    "pairs",
    [
        {},
        {"owner": "nova"},
        {"owner": "k8s", "cluster": "another"},
        {"cluster": "k8s"},
        {**THEIRS, "manager": "contrail-multinet"},
    ],
)
def test_what_is_not_a_pod_of_the_cluster_or_ours_does_not_count(pairs: dict[str, str]) -> None:
    writers = OtherWriters("k8s")
    writers.listed([item("a", **pairs)])
    writers.saw(item("b", **pairs))
    writers.check()


def test_pods_that_others_wrote_are_named_with_their_number() -> None:
    writers = OtherWriters("k8s")
    writers.listed([item(uuid, **THEIRS) for uuid in "dcba"])
    with pytest.raises(
        StoreError, match=r"wrote 4 virtual machines of cluster k8s \(name-a, name-b, name-c\): stop it"
    ):
        writers.check()


def test_nothing_counts_once_it_is_deleted_or_left_out_of_a_list() -> None:
    writers = OtherWriters("k8s")
    writers.listed([item("a", **THEIRS), item("b", **THEIRS)])
    writers.listed([item("a", **THEIRS)])
    writers.deleted("a")
    writers.check()


async def test_a_waiter_is_told_when_another_program_begins_to_write() -> None:
    writers = OtherWriters("k8s")
    waiting = asyncio.create_task(writers.wait())
    writers.saw(item("a"))
    await asyncio.sleep(0)
    assert not waiting.done()
    writers.saw(item("a", **THEIRS))
    with pytest.raises(StoreError, match="a virtual machine of cluster k8s"):
        async with asyncio.timeout(5):
            await waiting
