"""Turns JSON of the server into the structs of whoever asks.

One object that does not fit its struct must not keep all others from being read, so lists and watches give such a one
as `Unreadable`, by name.
"""

from typing import Any, TypeVar

import msgspec

from contrail_config.kube.errors import KubeError
from contrail_config.kube.resource import KubeObject, Metadata

T = TypeVar("T", bound=KubeObject)
S = TypeVar("S")

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What the decoder raises for bytes that are no JSON, hold text that is no UTF-8, or are nested too deeply."""

_decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}  # making one costs as much as decoding some pages


class UndecodableObject(msgspec.Struct, frozen=True):
    """An object that does not fit its struct, and why."""

    metadata: Metadata
    problem: str


class _Identity(msgspec.Struct, frozen=True):
    metadata: Metadata


def decode_object(raw: bytes | msgspec.Raw, kind: type[T]) -> T | UndecodableObject:
    """Returns the object, or its identity with what is wrong. Raises KubeError if it is no object at all."""
    try:
        found: T = _decoder(kind).decode(raw)
    except msgspec.ValidationError as error:
        return UndecodableObject(decode(raw, _Identity, asked="object").metadata, str(error))
    except NOT_JSON as error:
        raise _nonsense("object", error) from error
    return found


def decode(raw: bytes | msgspec.Raw, kind: type[S], *, asked: str) -> S:
    """Returns what must be there. Raises KubeError, naming what was `asked`, if it is not."""
    try:
        found: S = _decoder(kind).decode(raw)
    except (msgspec.ValidationError, *NOT_JSON) as error:
        raise _nonsense(asked, error) from error
    return found


def _nonsense(asked: str, error: Exception) -> KubeError:
    return KubeError(f"{asked}: the server answered what cannot be read: {error}")


def _decoder(kind: type[Any]) -> msgspec.json.Decoder[Any]:
    if kind not in _decoders:
        _decoders[kind] = msgspec.json.Decoder(kind)
    return _decoders[kind]
