"""Client of the manager's read-only API."""

from collections.abc import Mapping
from typing import Generic, NamedTuple, TypeVar

import msgspec

from contrail_config.objects import Event
from contrailctl.endpoint import Endpoint
from contrailctl.errors import NotFoundError, ResponseError
from manager.api.types import InterfaceView, NetworkView, PodView, PortView, Summary

View = TypeVar("View", bound=msgspec.Struct)


class _Items(msgspec.Struct, rename={"next_page": "continue"}):
    items: list[msgspec.Raw]
    next_page: str | None = None


class _Page(NamedTuple, Generic[View]):
    views: list[View]
    token: str | None


class ManagerApi:
    """API of one manager; None for namespace or name matches all. Methods raise ContrailctlError."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def summary(self) -> Summary:
        """Returns the numbers of objects."""
        return self._decode("/v1/summary", self._endpoint.get("/v1/summary"), Summary)

    def networks(self, *, namespace: str | None = None, name: str | None = None) -> list[NetworkView]:
        """Returns networks."""
        return self._items("networks", NetworkView, namespace, name)

    def pods(self, *, namespace: str | None = None, name: str | None = None) -> list[PodView]:
        """Returns pods."""
        return self._items("pods", PodView, namespace, name)

    def interfaces(self, *, namespace: str | None = None, name: str | None = None) -> list[InterfaceView]:
        """Returns interfaces; `name` is the name of the pod."""
        return self._items("interfaces", InterfaceView, namespace, name)

    def events(self, *, namespace: str | None = None, name: str | None = None) -> list[Event]:
        """Returns events; `name` is the name of their object."""
        return self._items("events", Event, namespace, name)

    def pod(self, namespace: str, name: str) -> PodView:
        """Returns one pod. Raises NotFoundError."""
        pods = self.pods(namespace=namespace, name=name)
        if not pods:
            raise NotFoundError(f"pod {namespace}/{name} not found at {self._endpoint.url}")
        return pods[0]

    def ports(self, namespace: str, name: str) -> list[PortView]:
        """Returns the ports of a pod, of which the manager of a cluster asks the agent of the pod's node.

        Raises NotFoundError if the manager cannot know them, ResponseError if the agent does not answer.
        """
        return self._items("ports", PortView, namespace, name)

    def _items(self, kind: str, view: type[View], namespace: str | None, name: str | None) -> list[View]:
        """Returns the items of all pages."""
        views: list[View] = []
        token: str | None = None
        while True:
            page = self._page(f"/v1/{kind}", {"namespace": namespace, "name": name, "continue": token}, view)
            views += page.views
            if page.token is None or page.token == token:  # the latter: a server that would never end
                return views
            token = page.token

    def _page(self, path: str, query: Mapping[str, str | None], view: type[View]) -> "_Page[View]":
        # Each item is decoded on its own, so that the error has the path within the item.
        decoded = self._decode(path, self._endpoint.get(path, query), _Items)
        return _Page([self._decode(path, item, view) for item in decoded.items], decoded.next_page)

    def _decode(self, path: str, body: bytes | msgspec.Raw, kind: type[View]) -> View:
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.DecodeError as error:
            url = f"{self._endpoint.url}{path}"
            raise ResponseError(f"{url}: invalid response, or a manager of another version: {error}") from error
