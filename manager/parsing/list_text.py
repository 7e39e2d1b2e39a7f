"""Annotations that take one value or several: `a`, `a, b` or `["a", "b"]`."""

from manager.parsing.errors import BadValueError
from manager.parsing.json_text import parse_literal
from manager.parsing.quoting import quoted


def parse_list(text: str) -> list[str]:
    """The values of a comma list or a JSON list of texts, trimmed; none if it is blank. Raises BadValueError."""
    stripped = text.strip()
    if not stripped:
        return []
    values = parse_literal(stripped) if stripped.startswith("[") else stripped.split(",")
    if not all(isinstance(value, str) and value.strip() for value in values):
        raise BadValueError(f"{quoted(text)} is no list of texts, none of them empty")
    return [value.strip() for value in values]
