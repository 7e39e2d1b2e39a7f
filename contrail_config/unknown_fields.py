"""Unknown fields: what a newer release wrote into an object, preserved when this one replaces the object.

During a rolling upgrade, and after a rollback, programs of two releases read and write the same objects. Each ignores
fields that it does not know. Objects are replaced as a whole, so a writer must carry these fields over, or the other
release would lose them.

An item of a list is identified by its first field, such as the uuid of an interface or the CIDR of a subnet. An item
that the writer removes loses its unknown fields with it.
"""

from collections.abc import Mapping
from typing import Any

import msgspec


def with_unknown_fields(wanted: msgspec.Struct, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `wanted` as JSON values, with those fields of its stored JSON that its type does not know."""
    values: dict[str, Any] = msgspec.to_builtins(wanted)
    _add_unknown(values, wanted, stored)
    return values


def _add_unknown(values: dict[str, Any], wanted: msgspec.Struct, stored: Mapping[str, Any]) -> None:
    known = wanted.__struct_encode_fields__
    values.update((key, value) for key, value in stored.items() if key not in known)
    for attribute, key in zip(wanted.__struct_fields__, known, strict=True):
        if key in values and key in stored:
            _add_nested(values[key], getattr(wanted, attribute), stored[key])


def _add_nested(values: Any, wanted: Any, stored: Any) -> None:
    if isinstance(wanted, msgspec.Struct) and isinstance(stored, dict):
        _add_unknown(values, wanted, stored)
    elif isinstance(wanted, tuple | list) and isinstance(stored, list):
        _add_to_items(values, wanted, stored)


def _add_to_items(values: Any, wanted: Any, stored: list[Any]) -> None:
    items = [item for item in stored if isinstance(item, dict)]
    for value, item in zip(values, wanted, strict=True):
        if isinstance(item, msgspec.Struct):
            identity = item.__struct_encode_fields__[0]
            same = next((each for each in items if each.get(identity) == value[identity]), None)
            if same is not None:
                _add_unknown(value, item, same)
