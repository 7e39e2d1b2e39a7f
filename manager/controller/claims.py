"""Claims on what only one pod may have: its uid, and the MAC addresses of its interfaces in their networks.

First come, first served: a pod that requests a MAC of another one waits, whether that one requested it too or got it
derived from the uuid of its interface. A derived MAC has 40 random bits, so among 150,000 interfaces of a network about
one in a hundred times two are equal; another one is derived for the later pod.

The table has an entry for each interface of the cluster, so MACs are kept as integers.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from contrail_config.objects import interface_mac
from manager.dependencies import Dependency, mac_dependency, uid_dependency

_MAC_BITS: Final = 48


class Conflict(NamedTuple):
    """A claim that failed, and the pod that holds it."""

    dependency: Dependency
    holder: str


class MacRequest(NamedTuple):
    """An interface, by its uuid, with its network's; `mac` is None if any MAC will do."""

    network_uuid: str
    vmi_uuid: str
    mac: str | None


class _Claim(NamedTuple):
    uid: str
    macs: tuple[int, ...]


class Claims:
    """Claims of pods, named by `namespace/name`; `on_released` is called with each dependency that becomes free."""

    def __init__(self, on_released: Callable[[Dependency], None]) -> None:
        self._on_released = on_released
        self._claims: dict[str, _Claim] = {}
        self._uids: dict[str, str] = {}  # pods
        self._macs: dict[int, str] = {}  # pods, by network and MAC
        self._numbers: dict[str, int] = {}  # of networks, in the upper bits of a MAC's key; as many as NADs had names
        self._networks: list[str] = []  # by number

    def __len__(self) -> int:
        return len(self._claims)

    def claim(self, pod: str, uid: str, requests: Sequence[MacRequest]) -> list[str] | Conflict:
        """Claims the uid and a MAC for each request, in place of the pod's earlier claims, and returns the MACs.

        All or none: returns the first conflict. A MAC that the pod has already been given by derivation stays.
        """
        if (holder := self._uids.get(uid, pod)) != pod:
            return Conflict(uid_dependency(uid), holder)
        wanted = {self._key(request.network_uuid, request.mac) for request in requests if request.mac is not None}
        for key in wanted:
            if (holder := self._macs.get(key, pod)) != pod:
                return Conflict(self._dependency(key), holder)
        keys = [self._select(pod, request, wanted) for request in requests]
        self._replace(pod, uid, keys)
        return [_text(key) for key in keys]

    def adopt(self, pod: str, uid: str, macs: Iterable[tuple[str, str]]) -> list[Conflict]:
        """Claims what an existing virtual machine has, MACs with their networks' uuids; returns what others hold."""
        conflicts = []
        if (holder := self._uids.get(uid, pod)) != pod:
            conflicts.append(Conflict(uid_dependency(uid), holder))
        free = []
        for key in [self._key(network_uuid, mac) for network_uuid, mac in macs]:
            if (holder := self._macs.get(key, pod)) == pod:
                free.append(key)
            else:
                conflicts.append(Conflict(self._dependency(key), holder))
        self._replace(pod, uid, free)
        return conflicts

    def move(self, pod: str, to: str) -> None:
        """Moves all claims of the pod to another name, which has none."""
        claim = self._claims.pop(pod, None)
        if claim is None:
            return
        self._claims[to] = claim
        if self._uids.get(claim.uid) == pod:
            self._uids[claim.uid] = to
        self._macs.update(dict.fromkeys(claim.macs, to))

    def release(self, pod: str) -> None:
        """Releases all claims of the pod. Idempotent."""
        if (claim := self._claims.pop(pod, None)) is not None:
            self._free(pod, claim, kept=_Claim("", ()))

    def _select(self, pod: str, request: MacRequest, taken: set[int]) -> int:
        """Returns the key of the requested MAC, or else of a derived one, which it adds to `taken`."""
        if request.mac is not None:
            return self._key(request.network_uuid, request.mac)
        derived = (
            self._key(request.network_uuid, interface_mac(request.vmi_uuid, attempt)) for attempt in itertools.count()
        )
        candidates = (key for key in derived if key not in taken)
        own = self._claims.get(pod)
        first = next(key for key in candidates if self._macs.get(key, pod) == pod)
        if own is not None and first not in own.macs:
            # The earlier one may be written already, without an answer: one becoming free must not change the choice.
            first = next((key for key in itertools.islice(candidates, 4) if key in own.macs), first)
        taken.add(first)
        return first

    def _replace(self, pod: str, uid: str, keys: Sequence[int]) -> None:
        before = self._claims.get(pod)
        claim = self._claims[pod] = _Claim(uid, tuple(keys))
        self._uids.setdefault(uid, pod)
        self._macs.update(dict.fromkeys(keys, pod))
        if before is not None:
            self._free(pod, before, kept=claim)

    def _free(self, pod: str, claim: _Claim, *, kept: _Claim) -> None:
        if claim.uid != kept.uid and self._uids.get(claim.uid) == pod:
            del self._uids[claim.uid]
            self._on_released(uid_dependency(claim.uid))
        for key in claim.macs:
            if key not in kept.macs:
                del self._macs[key]
                self._on_released(self._dependency(key))

    def _key(self, network_uuid: str, mac: str) -> int:
        number = self._numbers.get(network_uuid)
        if number is None:
            number = self._numbers[network_uuid] = len(self._networks)
            self._networks.append(network_uuid)
        return number << _MAC_BITS | int(mac.replace(":", ""), 16)

    def _dependency(self, key: int) -> Dependency:
        return mac_dependency(self._networks[key >> _MAC_BITS], _text(key))


def _text(key: int) -> str:
    """Returns the MAC in a key as text."""
    octets = (key & ((1 << _MAC_BITS) - 1)).to_bytes(_MAC_BITS // 8, "big")
    return octets.hex(":")
