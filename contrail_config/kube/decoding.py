"""Decoding of the server's JSON into the caller's structs.

One object that does not match its struct must not hide all others, so lists and watches return it as an
`UndecodableObject`, with its metadata. Nor must one that is nested too deeply for the decoder: only then the text is
decoded again, without its deepest values, which are either not read or do not match the struct.
"""

from typing import Any, TypeVar

import msgspec

from contrail_config.kube.errors import KubeError
from contrail_config.kube.json_nesting import remove_deep_values
from contrail_config.kube.resource import KubeObject, Metadata, Resource

T = TypeVar("T", bound=KubeObject)
S = TypeVar("S")

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What the decoder raises for bytes that are not JSON, for text that is not UTF-8, and for too deep nesting."""

_decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}  # creating one costs as much as decoding several pages


class UndecodableObject(msgspec.Struct, frozen=True):
    """An object that does not match its struct or its resource's check, and why."""

    metadata: Metadata
    problem: str


class _Identity(msgspec.Struct, frozen=True):
    metadata: Metadata


def decode_object(raw: bytes | msgspec.Raw, resource: Resource[T]) -> T | UndecodableObject:
    """Returns the object, or its metadata with the problem. Raises KubeError if `raw` is not an object at all."""
    try:
        found = _decode(raw, resource.type)
    except msgspec.ValidationError as error:
        return UndecodableObject(decode(raw, _Identity, request="object").metadata, str(error))
    except NOT_JSON as error:
        raise _undecodable("object", error) from error
    problem = None if resource.check is None else resource.check(found)
    return found if problem is None else UndecodableObject(found.metadata, problem)


def decode(raw: bytes | msgspec.Raw, kind: type[S], *, request: str) -> S:
    """Returns the decoded struct. Raises KubeError that names the `request`."""
    try:
        return _decode(raw, kind)
    except (msgspec.ValidationError, *NOT_JSON) as error:
        raise _undecodable(request, error) from error


def _decode(raw: bytes | msgspec.Raw, kind: type[S]) -> S:
    try:
        found: S = _decoder(kind).decode(raw)
    except RecursionError:
        found = _decoder(kind).decode(remove_deep_values(bytes(raw)))
    return found


def _undecodable(request: str, error: Exception) -> KubeError:
    return KubeError(f"{request}: the response cannot be decoded: {error}")


def _decoder(kind: type[Any]) -> msgspec.json.Decoder[Any]:
    if kind not in _decoders:
        _decoders[kind] = msgspec.json.Decoder(kind)
    return _decoders[kind]
