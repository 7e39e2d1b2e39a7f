"""The annotation `opencontrail.org/network`: a network that exists already, by its Contrail name.

On a NAD it says which network the NAD stands for; on a pod or a namespace it chooses the network of index 0.
"""

from typing import Any

from contrail_config.objects import FqName
from manager.parsing.errors import AnnotationError, BadValueError
from manager.parsing.json_text import json_object, parse_literal
from manager.parsing.quoting import quoted

NETWORK_KEY = "opencontrail.org/network"


def parse_network_annotation(text: str) -> FqName:
    """The network's fq_name, from the annotation of a pod or namespace.

    Raises AnnotationError, which names key and value.
    """
    try:
        return parse_fq_name(text)
    except BadValueError as error:
        raise AnnotationError(f"{NETWORK_KEY}: {error}") from error


def parse_fq_name(text: str) -> FqName:
    """The fq_name from a JSON object, or Python dict literal, with `domain`, `project` and `name`.

    Raises BadValueError.
    """
    value = json_object(parse_literal(text))
    return _part(value, "domain"), _part(value, "project"), _part(value, "name")


def _part(value: dict[str, Any], key: str) -> str:
    """A colon would shift the parts: they are joined by colons wherever a network is named in one string."""
    if key not in value:
        raise BadValueError(f"{quoted(value)} lacks {key}")
    part = value[key]
    if not isinstance(part, str) or not part.strip() or ":" in part or not part.isprintable():
        raise BadValueError(f"{key} {quoted(part)} is no part of a network's name")
    return part
