"""Answers of the server: the table that maps statuses and fixed words of their texts to the errors of this client.

Only fixed words are compared: lists in a text are printed differently by servers that run on Python 2.
"""

import html
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from contrail_config.vnc.errors import (
    VncAddressTakenError,
    VncError,
    VncExhaustedError,
    VncExistsError,
    VncForbiddenError,
    VncInUseError,
    VncNotFoundError,
    VncOverloadedError,
    VncRejectedError,
    VncServerError,
    VncUnauthorizedError,
    VncUnavailableError,
)


class _Answer(NamedTuple):
    """An answer is of a kind if it has the status and all words."""

    status: int
    words: tuple[str, ...]
    kind: type[VncError]


_ANSWERS: Final = (
    _Answer(400, ("FQ Name:", "/subnets/", "at zookeeper"), VncAddressTakenError),
    _Answer(400, ("Gateway IP cannot be used",), VncAddressTakenError),
    _Answer(400, ("has exhausted subnet",), VncExhaustedError),
    _Answer(400, ("has no defined subnets",), VncExhaustedError),
    _Answer(400, ("Parent [", "does not exist"), VncNotFoundError),
    _Answer(400, ("Unknown reference in resource",), VncNotFoundError),
    _Answer(400, ("Cannot set VXLAN_ID", "already been set"), VncExistsError),
    _Answer(409, ("IP address already in use",), VncAddressTakenError),
    _Answer(409, ("already exists with",), VncExistsError),
    _Answer(409, ("FQ Name:", "at zookeeper"), VncExistsError),
    _Answer(409, ("Delete when ",), VncInUseError),
    _Answer(409, ("Cannot Delete IP Block",), VncInUseError),
    _Answer(409, (), VncRejectedError),  # a gateway or pool outside of its subnet
    _Answer(500, ("Too many pending updates",), VncOverloadedError),
    _Answer(500, ("has invalid alloc_unit",), VncRejectedError),
    _Answer(500, ("has invalid subnet",), VncRejectedError),
    _Answer(500, (), VncServerError),
)

_BY_STATUS: Final[Mapping[int, type[VncError]]] = {
    401: VncUnauthorizedError,
    403: VncForbiddenError,
    404: VncNotFoundError,
    429: VncOverloadedError,
    502: VncUnavailableError,
    503: VncOverloadedError,
    504: VncUnavailableError,
}

_PREFORMATTED = re.compile(r"<pre>(.*?)</pre>", re.DOTALL)


def answer_error(request: str, status: int, body: str, headers: Mapping[str, str]) -> VncError:
    """Returns the error for an answer; `request` names the request."""
    text = _text(body)
    message = f"{request}: {status} {text}".rstrip()
    return _kind(status, text)(message, status=status, retry_after=_seconds(headers.get("Retry-After", "")))


def _kind(status: int, text: str) -> type[VncError]:
    for answer in _ANSWERS:
        if answer.status == status and all(words in text for words in answer.words):
            return answer.kind
    return _BY_STATUS.get(status, VncUnavailableError if status >= 500 else VncRejectedError)


def _text(body: str) -> str:
    """Returns the text of an answer: plain, or in an HTML page."""
    if found := _PREFORMATTED.search(body):
        body = found.group(1)
    return html.unescape(body).strip()


def _seconds(text: str) -> float:
    return float(text) if text.isascii() and text.isdigit() else 0.0
