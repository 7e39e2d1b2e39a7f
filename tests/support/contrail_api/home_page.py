"""Home page: links to collections, to the base of resources, and to actions."""

from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.stored import Object

_ACTIONS = {
    "name-to-id": "fqname-to-id",
    "id-to-name": "id-to-fqname",
    "ref-update": "ref-update",
    "ref-relax-for-delete": "ref-relax-for-delete",
    "prop-collection-update": "prop-collection-update",
    "list-bulk-collection": "list-bulk-collection",
    "watch": "watch",
}


def home_page(base: str, *, has_watch: bool) -> Object:
    """Returns the response to `GET /`."""
    links = [_link("collection", f"{base}/{kind.collection}", kind.name) for kind in KINDS.values()]
    links += [_link("resource-base", f"{base}/{kind.name}", kind.name) for kind in KINDS.values()]
    links += [
        _link("action", f"{base}/{path}", name, "GET" if path == "watch" else "POST")
        for name, path in _ACTIONS.items()
        if has_watch or path != "watch"
    ]
    return {"href": base, "links": links}


def _link(relation: str, href: str, name: str, method: str | None = None) -> Object:
    return {"link": {"rel": relation, "href": href, "name": name, "method": method}}
