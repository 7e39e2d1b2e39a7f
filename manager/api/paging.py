"""Pages of the API's lists, as in Kubernetes: `limit` and `continue`, so that no answer holds a whole cluster.

A page follows the last item of the one before, by the order of the list, instead of its number. So no item that stays
is skipped or repeated while others come and go, and the manager keeps nothing between two requests. The pages are of
different moments.
"""

import base64
import heapq
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import msgspec

DEFAULT_LIMIT = 500
MAX_LIMIT = 1000

T = TypeVar("T")

Key = tuple[str, ...]
"""Position of an item in its list: no two items have the same."""


class PageRequest(msgspec.Struct, frozen=True):
    """At most `limit` items with keys greater than `after`; None: from the beginning."""

    limit: int = DEFAULT_LIMIT
    after: Key | None = None


class Page(msgspec.Struct, Generic[T], frozen=True, omit_defaults=True, rename={"next_page": "continue"}):
    """Items in order; `next_page` is the token of the next page, None if this is the last."""

    items: tuple[T, ...]
    next_page: str | None = None


def take_page(items: Iterable[T], key: Callable[[T], Key], request: PageRequest) -> Page[T]:
    """Returns the page of the items, which need not be sorted."""
    after = request.after
    following = (item for item in items if after is None or key(item) > after)
    found = heapq.nsmallest(request.limit + 1, following, key=key)
    if len(found) <= request.limit:
        return Page(tuple(found))
    found.pop()
    return Page(tuple(found), page_token(key(found[-1])))


def page_token(key: Key) -> str:
    """Returns the token of the page after the item with this key."""
    return base64.urlsafe_b64encode(msgspec.json.encode(key)).decode().rstrip("=")


def read_token(token: str) -> Key:
    """Returns the key in a token. Raises ValueError."""
    try:
        padded = token + "=" * (-len(token) % 4)
        key = msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=Key)
    except (ValueError, msgspec.DecodeError) as error:
        raise ValueError("not a token of this API") from error
    if not key:
        raise ValueError("not a token of this API")
    return key
