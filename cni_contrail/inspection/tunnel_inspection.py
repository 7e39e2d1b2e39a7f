"""Inspects tunnels: the VXLAN links of a network, or those of index 0. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cni_contrail.datapath.tunnel_messages import Tunnel, TunnelInfo
from cni_contrail.inspection.difference import MISSING, WRONG, Difference, stale


def tunnel_differences(
    vni: int, desired: Mapping[str, Tunnel], found: Mapping[str, TunnelInfo], *, bridge: int | None = None
) -> Iterator[Difference]:
    """Yields what is wrong with tunnels by name; with `bridge`, its index, they are ports of it."""
    for name, tunnel in desired.items():
        if name not in found:
            yield Difference(vni, MISSING, f"tunnel {name}")
        elif problems := list(_problems(found[name], tunnel, bridge)):
            yield Difference(vni, WRONG, f"tunnel {name}", ", ".join(problems))
    yield from stale(vni, (f"tunnel {name}" for name in found.keys() - desired.keys()))


def carrying(desired: Mapping[str, Tunnel], found: Mapping[str, TunnelInfo]) -> frozenset[str]:
    """Returns the desired tunnels that exist and are up; the entries of others go with them."""
    return frozenset(name for name in desired if name in found and found[name].is_up)


def _problems(info: TunnelInfo, tunnel: Tunnel, bridge: int | None) -> Iterator[str]:
    if not info.is_up:
        yield "down"
    for field, value in tunnel._asdict().items():
        actual = getattr(info.tunnel, field)
        if actual != value:
            yield f"{field} is {actual or 'not set'}, not {value}"
    if info.is_learning:
        yield "it learns MACs"
    if not info.has_checksums:
        yield "UDP checksums are off"
    if bridge is not None:
        yield from _port_problems(info, bridge)


def _port_problems(info: TunnelInfo, bridge: int) -> Iterator[str]:
    if info.as_port.master != bridge:
        yield "not a port of the bridge"
    elif not info.as_port.has_settings:
        yield "settings of the bridge port"
    elif info.as_port.is_blocked:
        yield "the bridge forwards none of its frames"
    if not info.is_outside:
        yield "its packets do not leave by the node's namespace"
