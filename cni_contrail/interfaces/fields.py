"""Typed access to the keys of one item of the agent's list; every malformed value is an error with code 100."""

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
"""A uuid as agents write it. Strict, since it becomes part of URLs and file names."""

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", re.ASCII)
# At most 6 digits: `int` of an unbounded number takes quadratic time.
_INDEX = re.compile(r"([0-9]{1,6})/([0-9]{1,6})", re.ASCII)
_MAX_QUOTE = 100  # characters


class Fields:
    """One item of the agent's list and its position there. Methods that read a key raise `PluginError` (code 100)."""

    def __init__(self, item: Any, position: int) -> None:
        self._position = position
        if not isinstance(item, dict):
            raise PluginError(Code.BAD_AGENT_RESPONSE, f"agent's item {position} must be an object, not {_quote(item)}")
        self._item = item
        self.annotations = self._read_annotations()

    def malformed(self, key: str, must_be: str) -> PluginError:
        """Returns the error for a malformed value; it names item and key."""
        value = _quote(self._item.get(key))
        who = f"agent's item {self._position} ({_quote(self._item.get('id'))})"
        return PluginError(Code.BAD_AGENT_RESPONSE, f"{who}: {key} must be {must_be}, not {value}")

    def has(self, key: str) -> bool:
        """Returns whether the item has the key."""
        return key in self._item

    def uuid(self, key: str) -> str:
        """Returns a uuid, which must be in canonical form: it becomes part of paths."""
        return self._matching(key, UUID, "a uuid in lower case")

    def mac(self, key: str) -> str:
        """Returns a MAC address in lower case."""
        value = self._item.get(key)
        if not isinstance(value, str) or not _MAC.fullmatch(value.lower()):
            raise self.malformed(key, "a MAC address")
        return value.lower()

    def text(self, key: str) -> str:
        """Returns a string."""
        value = self._item.get(key)
        if not isinstance(value, str):
            raise self.malformed(key, "a string")
        return value

    def raw(self, key: str) -> object:
        """Returns the value as it is, None if the key is absent."""
        value: object = self._item.get(key)
        return value

    def number(self, key: str, lowest: int, highest: int) -> int:
        """Returns an integer from `lowest` to `highest`."""
        value = self._item.get(key)
        # bool is a subclass of int.
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
            raise self.malformed(key, f"a whole number from {lowest} to {highest}")
        return value

    def address(self, key: str, family: int | None) -> str:
        """Returns an address of the family (None: of either), in canonical form."""
        value = self._item.get(key)
        address = canonical_address(value) if isinstance(value, str) else None
        if address is None or family not in (None, family_of(address)):
            raise self.malformed(key, f"an IPv{family} address" if family else "an address")
        return address

    def address_or_none(self, key: str, family: int | None) -> str | None:
        """As `address`; None if the key is absent or the address is unspecified, by which agents mean "none"."""
        if not self.has(key):
            return None
        address = self.address(key, family)
        return None if is_unspecified(address) else address

    def gateways(self, key: str) -> tuple[str, ...]:
        """Returns a list of addresses, in canonical form; empty if the key is absent."""
        value = self._item.get(key, [])
        addresses = [canonical_address(each) for each in value] if isinstance(value, list) else [None]
        if None in addresses:
            raise self.malformed(key, "a list of addresses")
        return tuple(each for each in addresses if each is not None)

    def routes(self, key: str) -> tuple[Route, ...]:
        """Returns a list of `{"dst": CIDR, "gw": address}`, without `gw` for on-link; empty if the key is absent."""
        value = self._item.get(key, [])
        if not isinstance(value, list):
            raise self.malformed(key, "a list of routes")
        return tuple(self._route(key, each) for each in value)

    def index(self) -> tuple[int, int]:
        """Returns position and total of the annotation `index`."""
        match = _INDEX.fullmatch(self.annotations["index"])
        if not match or int(match[1]) >= int(match[2]):
            raise self.malformed("annotations", "a list with a valid index, <position>/<total>")
        return int(match[1]), int(match[2])

    def _read_annotations(self) -> dict[str, str]:
        """Returns the annotations, served as strings `{key:value}`; the value may contain colons."""
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
            raise self.malformed(key, "a list of routes with dst, a CIDR, and optionally gw, an address")
        if route.get("gw") is None:
            return Route(destination, None)
        gateway = canonical_address(route["gw"])
        if gateway is None or family_of(gateway) != family_of(destination):
            raise self.malformed(key, f"a list of routes; gw of {destination} must be an address of its family")
        return Route(destination, gateway)

    def _matching(self, key: str, pattern: re.Pattern[str], must_be: str) -> str:
        value = self._item.get(key)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise self.malformed(key, must_be)
        return value


def _quote(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _MAX_QUOTE else text[:_MAX_QUOTE] + "..."
