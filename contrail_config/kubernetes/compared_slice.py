"""Comparison of a network slice with what the server has of it."""

from enum import StrEnum
from typing import NamedTuple

from contrail_config.objects import NetworkSlice


class SliceState(StrEnum):
    """What the server has of a slice. Anything but CURRENT is corrected by the leading manager, or retried."""

    CURRENT = "Current"
    MISSING = "Missing"
    DIFFERENT = "Different"
    INVALID = "Invalid"
    SUPERFLUOUS = "Superfluous"


class ComparedSlice(NamedTuple):
    """A slice as it should be, None if there should be none, and what the server has of it."""

    wanted: NetworkSlice | None
    state: SliceState
