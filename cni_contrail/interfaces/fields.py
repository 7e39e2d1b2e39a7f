"""Reads the keys of one item that an agent answered, each by its type; anything else is an error with code 100."""

from __future__ import annotations

import json
import re

from cni_contrail.addresses import canonical_address, canonical_cidr, family_of, is_unspecified
from cni_contrail.errors import Code, PluginError
from cni_contrail.link.plan import Route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
"""A uuid as agents write it, and URLs and file names hold it."""

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", re.ASCII)
_INDEX = re.compile(r"([0-9]{1,6})/([0-9]{1,6})", re.ASCII)
_LONGEST_QUOTE = 100


class Fields:
    """One item of the agent's list and its position there."""

    def __init__(self, item: Any, position: int) -> None:
        self._position = position
        if not isinstance(item, dict):
            raise PluginError(Code.BAD_AGENT_RESPONSE, f"agent's item {position} must be an object, not {_quote(item)}")
        self._item = item
        self.annotations = self._read_annotations()

    def malformed(self, key: str, must_be: str) -> PluginError:
        """The error that names item and key."""
        value = _quote(self._item.get(key))
        who = f"agent's item {self._position} ({_quote(self._item.get('id'))})"
        return PluginError(Code.BAD_AGENT_RESPONSE, f"{who}: {key} must be {must_be}, not {value}")

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        return key in self._item

    def uuid(self, key: str) -> str:
        """A uuid in its one canonical form: it becomes a part of paths."""
        return self._matching(key, UUID, "a uuid in lower case")

    def mac(self, key: str) -> str:
        """A MAC address, lower-case."""
        value = self._item.get(key)
        if not isinstance(value, str) or not _MAC.fullmatch(value.lower()):
            raise self.malformed(key, "a MAC address")
        return value.lower()

    def number(self, key: str, lowest: int, highest: int) -> int:
        """A whole number within bounds."""
        value = self._item.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
            raise self.malformed(key, f"a whole number from {lowest} to {highest}")
        return value

    def address(self, key: str, family: int | None) -> str:
        """An address of that family (None: of either), in canonical form."""
        value = self._item.get(key)
        address = canonical_address(value) if isinstance(value, str) else None
        if address is None or family not in (None, family_of(address)):
            raise self.malformed(key, f"an IPv{family} address" if family else "an address")
        return address

    def address_or_none(self, key: str, family: int | None) -> str | None:
        """As `address`; None if the key is absent or the address is unspecified, as agents say "none"."""
        if not self.has(key):
            return None
        address = self.address(key, family)
        return None if is_unspecified(address) else address

    def routes(self, key: str) -> tuple[Route, ...]:
        """A list of `{"dst": CIDR, "gw": address}`, `gw` absent for on-link; empty if the key is absent."""
        value = self._item.get(key, [])
        if not isinstance(value, list):
            raise self.malformed(key, "a list of routes")
        return tuple(self._route(key, each) for each in value)

    def index(self) -> tuple[int, int]:
        """Position and number of interfaces, of the annotation `index`."""
        match = _INDEX.fullmatch(self.annotations["index"])
        if not match or int(match[1]) >= int(match[2]):
            raise self.malformed("annotations", "right about index: <position>/<number>")
        return int(match[1]), int(match[2])

    def _read_annotations(self) -> dict[str, str]:
        """Annotations come as strings `{key:value}`; the value may hold anything, colons too."""
        value = self._item.get("annotations", [])
        if not isinstance(value, list):
            raise self.malformed("annotations", "a list of strings {key:value}")
        annotations = {}
        for each in value:
            if not isinstance(each, str) or not (each.startswith("{") and each.endswith("}")) or ":" not in each:
                raise self.malformed("annotations", "a list of strings {key:value}")
            key, _, text = each[1:-1].partition(":")
            annotations[key] = text
        return annotations

    def _route(self, key: str, route: Any) -> Route:
        destination = canonical_cidr(route.get("dst")) if isinstance(route, dict) else None
        if destination is None:
            raise self.malformed(key, "a list of routes with dst, a CIDR, and perhaps gw, an address")
        if route.get("gw") is None:
            return Route(destination, None)
        gateway = canonical_address(route["gw"])
        if gateway is None or family_of(gateway) != family_of(destination):
            raise self.malformed(key, f"right about {destination}: gw an address of its family")
        return Route(destination, gateway)

    def _matching(self, key: str, pattern: re.Pattern[str], must_be: str) -> str:
        value = self._item.get(key)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise self.malformed(key, must_be)
        return value


def _quote(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "..."
