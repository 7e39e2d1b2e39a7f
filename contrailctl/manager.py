"""Client of the manager's read-only API."""

from typing import TypeVar

import msgspec

from contrail_config.objects import Event
from contrailctl.endpoint import Endpoint
from contrailctl.errors import NotFoundError, ResponseError
from manager.api.types import InterfaceView, NetworkView, PodView

View = TypeVar("View", bound=msgspec.Struct)


class _Items(msgspec.Struct):
    items: list[msgspec.Raw]


class ManagerApi:
    """API of one manager; None for namespace or name matches all. Methods raise ContrailctlError."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

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

    def _items(self, kind: str, view: type[View], namespace: str | None, name: str | None) -> list[View]:
        path = f"/v1/{kind}"
        body = self._endpoint.get(path, {"namespace": namespace, "name": name})
        try:
            # Each item is decoded on its own, so that the error has the path within the item.
            items = msgspec.json.decode(body, type=_Items).items
            return [msgspec.json.decode(item, type=view) for item in items]
        except msgspec.DecodeError as error:
            url = f"{self._endpoint.url}{path}"
            raise ResponseError(f"{url}: invalid response, or a manager of another version: {error}") from error
