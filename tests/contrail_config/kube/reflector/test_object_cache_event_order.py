"""Object cache: the events of an object's life, repeated and in any order, lead to its newest state."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrail_config.kube.object_cache import ObjectCache
from contrail_config.kube.resource_versions import is_newer
from contrail_config.kube.watch import WatchEvent, WatchType
from tests.support.config_maps import ConfigMap, LabelledMetadata
from tests.support.recorded_reflector import RecordedChanges

Event = WatchEvent[ConfigMap]


def event(type_: WatchType, version: int, life: int) -> Event:
    metadata = LabelledMetadata(name="a", namespace="default", uid=f"life-{life}", resource_version=str(version))
    return WatchEvent(type_, metadata, ConfigMap(metadata))


@st.composite
def lives(draw: st.DrawFn) -> list[Event]:
    """Several lives of objects with one name; the last object may still exist."""
    events: list[Event] = []
    for life in range(draw(st.integers(1, 4))):
        events.append(event(WatchType.ADDED, len(events) + 8, life))
        for _ in range(draw(st.integers(0, 3))):
            events.append(event(WatchType.MODIFIED, len(events) + 8, life))
        events.append(event(WatchType.DELETED, len(events) + 8, life))
    return events[: -1 if draw(st.booleans()) else None]


@given(lives(), st.data())
def test_the_newest_state_wins(life: list[Event], data: st.DataObject) -> None:
    delivered = data.draw(st.permutations(life + data.draw(st.lists(st.sampled_from(life)))))
    view: ObjectCache[ConfigMap] = ObjectCache()
    replayed = RecordedChanges()
    for each in delivered:
        for change in view.apply_event(each):
            replayed.apply(change)
    newest = life[-1]
    expected = [] if newest.type is WatchType.DELETED else [newest.object]
    assert list(view.objects.values()) == expected
    assert replayed.objects == dict(view.objects)


@pytest.mark.parametrize(
    ("version", "known", "newer"),
    [
        ("10", "9", True),
        ("9", "10", False),
        ("10", "10", False),
        ("a2", "a1", True),
        ("a1", "a2", True),
        ("a1", "a1", False),
        ("7", "a1", True),
        ("\u0667", "6", True),
    ],
)
def test_resource_versions_are_numbers_and_any_other_form_counts_as_newer(
    version: str, known: str, newer: bool
) -> None:
    assert is_newer(version, known) is newer


def test_tombstones_are_bounded() -> None:
    view: ObjectCache[ConfigMap] = ObjectCache()

    def kept_after(count: int) -> int:
        for number in range(count):
            metadata = LabelledMetadata(name=f"c{number}", namespace="default", resource_version=f"{number + 1}")
            list(view.apply_event(WatchEvent(WatchType.DELETED, metadata, ConfigMap(metadata))))
        return len(pickle.dumps(vars(view)["_tombstones"]))

    few = kept_after(2000)
    assert kept_after(20_000) < 1.2 * few
