"""Configuration files: YAML, read and validated as a whole at start, into a msgspec struct.

The struct is the schema (`forbid_unknown_fields`, `rename="kebab"`); a violation is one message with the key's path. A
key without a value has its default, as operators who comment out a value expect.
"""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from contrail_service.errors import ConfigurationError
from contrail_yaml.errors import YamlError
from contrail_yaml.file import read_yaml

T = TypeVar("T", bound=msgspec.Struct)

_PATH = re.compile(r"^(?P<problem>.*?)(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)


def load_configuration(path: str, schema: type[T]) -> T:
    """Returns the file as `schema`. Raises ConfigurationError."""
    try:
        document = read_yaml(path)
    except YamlError as error:
        raise ConfigurationError(str(error)) from error
    return convert_configuration(document, schema, origin=path)


def convert_configuration(document: Any, schema: type[T], *, origin: str) -> T:
    """Returns a parsed document as `schema`; `origin` names it in errors. Raises ConfigurationError."""
    if document is None:  # an empty file
        document = {}
    if not isinstance(document, Mapping):
        raise ConfigurationError(f"{origin}: must be a mapping of keys, not {type(document).__name__}")
    try:
        return msgspec.convert(_without_empty(document), schema)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{origin}: {_explain(str(error))}") from error


def _without_empty(document: Any) -> Any:
    if isinstance(document, Mapping):
        return {key: _without_empty(value) for key, value in document.items() if value is not None}
    return document


def _explain(message: str) -> str:
    """Puts the key's path first: `store.kind: Invalid enum value 'x'`."""
    match = _PATH.match(message)
    if match is None or match["path"] is None:
        return message
    return f"{match['path'].lstrip('.')}: {match['problem']}"
