"""Values in error messages: quoted as JSON, and cut, since a network configuration of a tenant may be 1 MiB long."""

import json

MAX_QUOTED = 200
"""Maximum number of characters of one value in an error message."""

_CUT = "..."


def quoted(value: object) -> str:
    """Returns a value as JSON, cut to 200 characters."""
    return cut(json.dumps(value, default=str))  # `default`: a YAML file may hold dates


def cut(text: str) -> str:
    """Returns the text, cut to 200 characters."""
    return text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - len(_CUT)] + _CUT
