"""The annotation `opencontrail.org/network`: the Contrail name of an existing network.

On a NAD it makes the NAD an alias of that network; on a pod or a namespace it chooses the network of index 0.
"""

from typing import Any

from contrail_config.objects import FqName
from manager.parsing.errors import AnnotationError, BadValueError
from manager.parsing.json_text import json_object, parse_literal
from manager.parsing.quoting import quoted

NETWORK_KEY = "opencontrail.org/network"


def parse_network_annotation(text: str) -> FqName:
    """Returns the fq_name in a pod's or namespace's annotation. Raises AnnotationError, which names key and value."""
    try:
        # The key is added here: a NAD reports it with its other errors.
        return parse_fq_name(text)
    except BadValueError as error:
        raise AnnotationError(f"{NETWORK_KEY}: {error}") from error


def parse_fq_name(text: str) -> FqName:
    """Returns the fq_name in a JSON object, or Python dict literal, with `domain`, `project` and `name`.

    Raises BadValueError.
    """
    value = json_object(parse_literal(text))
    return _part(value, "domain"), _part(value, "project"), _part(value, "name")


def _part(value: dict[str, Any], key: str) -> str:
    """Rejects colons: a network name in one string is its parts joined by colons."""
    if key not in value:
        raise BadValueError(f"{quoted(value)}: {key} is missing")
    part = value[key]
    if not isinstance(part, str) or not part.strip() or ":" in part or not part.isprintable():
        raise BadValueError(f"{key} {quoted(part)} is not a valid part of a network name")
    return part
