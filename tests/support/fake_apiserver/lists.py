"""Paginated lists: all pages show the state at the first page, until the history is compacted."""

import base64
import json

from tests.support.fake_apiserver.kinds import Kind
from tests.support.fake_apiserver.selectors import Matches
from tests.support.fake_apiserver.status_errors import expired
from tests.support.fake_apiserver.storage import Key, Object, Storage


class Lists:
    """Serves lists and keeps the remaining items of unfinished ones."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._unfinished: dict[int, list[Object]] = {}
        self._started = 0

    def page(self, kind: Kind, namespace: str, matches: Matches, *, limit: int, token: str) -> Object:
        """Returns one page; `limit` 0 returns everything."""
        revision, items = self._continue(token) if token else self._start(kind, namespace, matches)
        page, rest = (items[:limit], items[limit:]) if limit else (items, [])
        metadata: Object = {"resourceVersion": str(revision)}
        if rest:
            self._started += 1
            self._unfinished[self._started] = rest
            metadata |= {"continue": _token(revision, self._started), "remainingItemCount": len(rest)}
        return {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata, "items": page}

    def _start(self, kind: Kind, namespace: str, matches: Matches) -> tuple[int, list[Object]]:
        found: list[tuple[Key, Object]] = sorted(self._storage.objects(kind).items())
        items = [item for key, item in found if namespace in ("", key[0]) and matches(item)]
        return self._storage.revision, items

    def _continue(self, token: str) -> tuple[int, list[Object]]:
        revision, number = json.loads(base64.b64decode(token))
        if revision < self._storage.floor or number not in self._unfinished:
            raise expired("The provided continue parameter is too old to display a consistent list result.")
        return revision, self._unfinished[number]


def _token(revision: int, number: int) -> str:
    return base64.b64encode(json.dumps([revision, number]).encode()).decode()
