"""`NamedTuple` as in `typing`, without importing `typing`, which takes 2 to 4 ms, a tenth of the plugin's start.

Type checkers see `typing.NamedTuple`. A module that uses it needs `from __future__ import annotations`, since the
annotations are read while the class is created. Not promised: `super()` in a method.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping

__all__ = ["NamedTuple", "known_fields"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple
else:

    class _FieldsFromAnnotations(type):
        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = list(body["__annotations__"])
            defaults = [body[field] for field in fields if field in body]
            created = collections.namedtuple(  # noqa: PYI024  # this class replaces `typing.NamedTuple`
                name, fields, defaults=defaults, module=body["__module__"]
            )
            for key in body.keys() - {*fields, "__annotations__", "__module__", "__qualname__"}:
                setattr(created, key, body[key])
            return created

    class NamedTuple(metaclass=_FieldsFromAnnotations):
        """A tuple with named fields: the annotated names of the class body, in their order."""


def known_fields(kind: type[tuple[Any, ...]], document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what a stored document says of the fields of a `NamedTuple`: a newer release may have written more."""
    fields: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
    return {key: document[key] for key in fields if key in document}
