"""Names of Kubernetes objects, which become parts of file names, URLs and machine names further on."""

import re
from typing import Any

from manager.parsing.errors import BadValueError
from manager.parsing.json_text import quote_hint
from manager.parsing.quoting import quoted

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_SUBDOMAIN = 253


def namespace_name(value: Any) -> str:
    """The value, if it can be a namespace's name (RFC 1123 label). Raises BadValueError."""
    if not isinstance(value, str) or not _LABEL.fullmatch(value):
        raise _bad(value, "no name of a namespace: at most 63 of a-z, 0-9 and '-', the ends no '-'")
    return value


def object_name(value: Any) -> str:
    """The value, if it can be the name of a pod or NAD (RFC 1123 subdomain). Raises BadValueError."""
    if not isinstance(value, str) or len(value) > _LONGEST_SUBDOMAIN or not _SUBDOMAIN.fullmatch(value):
        raise _bad(value, "no name of an object: at most 253 of a-z, 0-9, '-' and '.', the ends no '-' or '.'")
    return value


def pod_name(value: Any) -> str:
    """The same for a pod in a manifest, where capitals do no harm (and stand in the multi-network design's example)."""
    object_name(value.lower() if isinstance(value, str) and value.isascii() else value)
    return str(value)


def _bad(value: Any, what: str) -> BadValueError:
    return BadValueError(f"{quoted(value)} is {what}{quote_hint(value) if isinstance(value, str) else ''}")
