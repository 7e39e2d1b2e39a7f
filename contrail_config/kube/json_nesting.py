"""Removal of deeply nested values from JSON, for a decoder that recurses per level.

The API server accepts 10,000 levels, such as in `managedFields`, which any tenant can write. The decoder gives up
after about 1,000 levels (Python 3.11) or fewer than 10,000 (3.12 and later, whatever the recursion limit), also in
parts that it only skips. The response would be lost as a whole.

Iterative, and linear in the length of the text: strings are skipped in one step each. The text is not validated; what
is not JSON outside of the removed values is left for the decoder to reject.
"""

import re
from typing import Final

MAX_DEPTH: Final = 64
"""Levels that remain; what the structs of this project read is less than half as deep, envelope included."""

# Possessive, and with an optional end: a string is never scanned twice, an unterminated one neither.
_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)


def remove_deep_values(text: bytes) -> bytes:
    """Returns the text with null in place of each array and object that is nested more deeply than `MAX_DEPTH`."""
    kept = list[bytes]()
    depth = end_of_removed = 0
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        if first in b"[{":
            depth += 1
            if depth == MAX_DEPTH + 1:
                kept += (text[end_of_removed : token.start()], b"null")
        elif first in b"]}":
            if depth == MAX_DEPTH + 1:
                end_of_removed = token.end()
            depth -= 1
    if depth <= MAX_DEPTH:  # otherwise the text ends within a removed value
        kept.append(text[end_of_removed:])
    return b"".join(kept)
