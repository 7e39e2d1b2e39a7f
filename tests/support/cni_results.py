"""Hypothesis strategies for results of ADD: every version, with the keys that it defines."""

from typing import Any

from hypothesis import strategies as st

from cni_contrail.runtime.versions import CHAINS_SINCE, UNVERSIONED_IPS_SINCE, at_least

_V4 = st.ip_addresses(v=4).map(str)
_V6 = st.ip_addresses(v=6).map(str)
_CIDRS = {"4": _V4.map(lambda address: f"{address}/24"), "6": _V6.map(lambda address: f"{address}/64")}
_WORD = st.text("abcdef0123456789", min_size=1, max_size=6)
_COUNT = st.integers(1, 9000)

ROUTE_EXTRAS = ("mtu", "advmss", "priority", "table", "scope")
INTERFACE_EXTRAS = ("mtu", "socketPath", "pciID")

_DNS = st.fixed_dictionaries(
    {"nameservers": st.lists(_V4, min_size=1)}, optional={"domain": _WORD, "search": st.lists(_WORD, min_size=1)}
)


def results(version: str) -> st.SearchStrategy[dict[str, Any]]:
    """Results of one version."""
    drawn = _listed(version) if at_least(version, CHAINS_SINCE) else _per_family()
    return drawn.map(lambda result: {"cniVersion": version, **result})


def _per_family() -> st.SearchStrategy[dict[str, Any]]:
    families = {f"ip{family}": _family(family) for family in _CIDRS}
    return st.fixed_dictionaries({}, optional={**families, "dns": _DNS}).filter(lambda result: result.keys() - {"dns"})


def _family(family: str) -> st.SearchStrategy[dict[str, Any]]:
    gateway = {"4": _V4, "6": _V6}[family]
    routes = st.lists(_route(family), min_size=1, max_size=3)
    return st.fixed_dictionaries({"ip": _CIDRS[family]}, optional={"gateway": gateway, "routes": routes})


def _route(family: str) -> st.SearchStrategy[dict[str, Any]]:
    gateway = {"4": _V4, "6": _V6}[family]
    return st.fixed_dictionaries(
        {"dst": _CIDRS[family]}, optional={"gw": gateway, **dict.fromkeys(ROUTE_EXTRAS, _COUNT)}
    )


@st.composite
def _listed(draw: st.DrawFn, version: str) -> dict[str, Any]:
    newest = at_least(version, UNVERSIONED_IPS_SINCE)
    interfaces = draw(st.lists(_interface(newest=newest), max_size=3))
    result = {
        "interfaces": interfaces,
        "ips": draw(st.lists(_ip(len(interfaces), with_family=not newest), max_size=4)),
        "routes": draw(st.lists(_route("4") | _route("6"), max_size=3)),
        "dns": draw(st.just({}) | _DNS),
    }
    return {key: value for key, value in result.items() if value}


def _interface(*, newest: bool) -> st.SearchStrategy[dict[str, Any]]:
    extras: dict[str, Any] = {"mtu": _COUNT, "socketPath": _WORD, "pciID": _WORD} if newest else {}
    return st.fixed_dictionaries({"name": _WORD}, optional={"mac": _WORD, "sandbox": _WORD, **extras})


@st.composite
def _ip(draw: st.DrawFn, interfaces: int, *, with_family: bool) -> dict[str, Any]:
    family = draw(st.sampled_from("46"))
    entry = {"address": draw(_CIDRS[family])}
    optional: dict[str, Any] = {"gateway": {"4": _V4, "6": _V6}[family]}
    if interfaces:
        optional["interface"] = st.integers(0, interfaces - 1)
    entry |= draw(st.fixed_dictionaries({}, optional=optional))
    return {"version": family, **entry} if with_family else entry
