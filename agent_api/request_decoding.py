"""Decodes and validates JSON request bodies; knows no HTTP.

The Contrail vrouter agent answers 500 to a body that it cannot parse and takes an invalid uuid for the nil one; its
clients only test for status 200. Here every invalid value is one error (400) that names its key, in an array with its
position (`[1].vmi-uuid: ...`), and a body that is invalid in part changes nothing.
"""

import json
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from agent_api.errors import BadRequestError
from agent_api.field_types import validation_error, wire_key
from contrail_yaml.duplicate_keys import unique_keys
from contrail_yaml.errors import DuplicateKeyError

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)


def decode_body(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Returns the decoded body; its text fields are not validated yet. Raises BadRequestError."""
    try:
        decoded = decoder.decode(body)
        _duplicate_key_detector.decode(body.decode())
    except msgspec.ValidationError as error:
        raise BadRequestError(_key_first(str(error))) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequestError(f"body: invalid JSON: {error}") from error
    except DuplicateKeyError as error:
        raise BadRequestError(str(error)) from error
    except RecursionError as error:
        raise BadRequestError("body: nested too deeply") from error
    return decoded


def validate_items(
    items: S | Sequence[S], *, unique: str, validate: Callable[[S], str | None] = validation_error
) -> list[S]:
    """Returns a single item or an array of items as a list of valid items. Raises BadRequestError.

    `unique` is the attribute whose value may occur only once in an array; `validate` returns the error of an item.
    """
    if isinstance(items, msgspec.Struct):
        if error := validate(items):
            raise BadRequestError(error)
        return [items]
    seen: set[str] = set()
    for position, item in enumerate(items):
        if error := validate(item):
            raise BadRequestError(f"[{position}].{error}")
        value = getattr(item, unique)
        if value in seen:
            raise BadRequestError(f"[{position}].{wire_key(item, unique)}: duplicate value {value}")
        seen.add(value)
    return list(items)


# msgspec silently keeps the last of several equal keys, so the standard parser reads the body a second time. Numbers
# stay text, because only keys are checked and Python refuses to convert integers of more than 4300 digits.
_duplicate_key_detector = json.JSONDecoder(object_pairs_hook=unique_keys, parse_int=str, parse_float=str)


def _key_first(message: str) -> str:
    """Turns msgspec's `Expected ... - at `$[0].vm-uuid`` into `[0].vm-uuid: Expected ...`."""
    problem, _, path = message.partition(" - at `$")
    return f"{path.strip('`.')}: {problem}" if path else problem
