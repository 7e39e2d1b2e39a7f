"""Values in error messages: quoted as JSON, and cut, since a network configuration of a tenant may be 1 MiB long."""

from collections.abc import Sequence

MAX_QUOTED = 200
"""Maximum number of characters of one value in an error message."""

MAX_LISTED = 16
"""Maximum number of elements that an error message lists."""

_CUT = "..."


def quoted(value: object) -> str:
    """Returns a value as JSON, cut to 200 characters."""
    import json  # slow to import, and modules of links only cut

    return cut(json.dumps(value, default=str))  # `default`: a YAML file may hold dates


def cut(text: str) -> str:
    """Returns the text, cut to 200 characters."""
    return text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - len(_CUT)] + _CUT


def listed(texts: Sequence[str], separator: str = ", ") -> str:
    """Returns the first 16 texts, joined, and the number of the others."""
    more = len(texts) - MAX_LISTED
    return separator.join([*texts[:MAX_LISTED], f"{more} more"] if more > 0 else texts)
