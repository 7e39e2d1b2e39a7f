"""Removes secrets: values whose name says that they are one, and texts that look like one. Pure.

No Secret is read at all. This is for what people write elsewhere nevertheless: environment variables, configuration of
other plugins, annotations, logs.
"""

import re
from typing import Any, Final

REDACTED: Final = "<redacted>"

_NAMES = (
    r"password|passwd|passphrase|pwd|secret|token|credential|authorization"
    r"|api[-_]?key|private[-_]?key|access[-_]?key|key[-_]data"
)
_SECRET_NAME = re.compile(rf"{_NAMES}|^auth$", re.IGNORECASE)
_SECRET_OPTION = re.compile(rf"--?[\w-]{{0,64}}(?:{_NAMES})[\w-]{{0,64}}", re.IGNORECASE)
_QUOTE = r"\\?[\"']"
# NAME: VALUE and NAME=VALUE, also in JSON within JSON; a value ends with its quote, its line or its word.
_ASSIGNMENT = re.compile(
    rf"((?:{_NAMES})[\w.-]{{0,64}}(?:{_QUOTE})?\s*[:=]\s*)"
    rf"(?:(\\?[\"'])(?:(?!\2).)*(?:\2|$)|(?:(?:bearer|basic)\s+)?[^\s,;&\"'}}\]]+)",
    re.IGNORECASE | re.MULTILINE,
)
_TEXTS = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), REDACTED),
    (re.compile(r"\bbearer\s+[\w.~+/=-]{8,}", re.IGNORECASE), f"Bearer {REDACTED}"),
    (re.compile(r"\bLS0tLS1CRUdJTi[\w+/=]*"), REDACTED),  # the same, or a certificate, in Base64
    (re.compile(r"(\"auth\\*\"\s*:\s*\\*\")[^\"\\]+"), rf"\1{REDACTED}"),  # user and password of a registry
    (re.compile(rf"({_SECRET_OPTION.pattern}[ \t]+)[^\s,;&\"']+", re.IGNORECASE), rf"\1{REDACTED}"),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"), REDACTED),  # a JSON Web Token
    (re.compile(r"(://)[^\s/@\"']+@"), rf"\1{REDACTED}@"),  # user and password of a URL
)
_ANYTHING = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})
"""Annotations that repeat a whole object."""


def redacted_text(text: str) -> str:
    """Returns the text without what looks like a secret."""
    for pattern, replacement in _TEXTS:
        text = pattern.sub(replacement, text)
    return _ASSIGNMENT.sub(lambda match: f"{match[1]}{match[2] or ''}{REDACTED}{match[2] or ''}", text)


def redacted(value: Any) -> Any:
    """Returns a JSON value without secrets: by the names of keys, and all values of environment variables."""
    if isinstance(value, str):
        return redacted_text(value)
    if isinstance(value, list):
        return [_of_word(before, each) for before, each in zip(["", *value], value, strict=False)]
    if isinstance(value, dict):
        return {key: _of_key(str(key), each) for key, each in value.items() if key not in _ANYTHING}
    return value


def _of_key(key: str, value: Any) -> Any:
    if key == "env" and isinstance(value, list):
        return [_variable(each) for each in value]
    if not _SECRET_NAME.search(key):
        return redacted(value)
    if isinstance(value, list):
        return [REDACTED if _is_text(each) else redacted(each) for each in value]
    return REDACTED if _is_text(value) else redacted(value)


def _of_word(before: Any, value: Any) -> Any:
    """Returns an item of a list; `before` may be an option of which it is the value."""
    is_value = isinstance(before, str) and _SECRET_OPTION.fullmatch(before)
    return REDACTED if is_value and _is_text(value) else redacted(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))


def _variable(variable: Any) -> Any:
    if isinstance(variable, dict) and "value" in variable:
        return {**variable, "value": REDACTED}
    return redacted(variable)
