"""Plans of kernel settings: any settings become the desired ones, what is right is not written, and in which order."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from cni_contrail.datapath.forwarding import plan_forwarding
from cni_contrail.datapath.kernel_settings import differing, read_settings, write_settings
from cni_contrail.link.errors import SysctlError
from tests.cni_contrail.datapath.conftest import VirtualNetwork

IPV4, IPV6 = "ipv4/ip_forward", "ipv6/conf/all/forwarding"
LINKS = ("eth0", "lo", "tap1")
values = some.sampled_from(["0", "1", "2"])
keys = some.sampled_from(["ipv4/ip_forward", "ipv6/conf/all/forwarding", "ipv4/conf/br0/send_redirects"])
forwarding = some.fixed_dictionaries(
    {IPV4: values, IPV6: values, **{f"ipv6/conf/{link}/accept_ra": values for link in LINKS}}
)


@given(desired=some.dictionaries(keys, values), found=some.dictionaries(keys, values))
def test_what_is_right_is_not_written_and_the_rest_becomes_right(
    desired: dict[str, str], found: dict[str, str]
) -> None:
    changes = differing(desired, found)
    assert {**found, **changes} == {**found, **desired}
    assert not changes.items() & found.items()
    assert list(changes) == [key for key in desired if key in changes]


@given(found=forwarding, ipv6=some.booleans())
def test_any_settings_become_those_of_a_node_that_forwards(found: dict[str, str], *, ipv6: bool) -> None:
    left = {**found, **plan_forwarding(found, ipv6=ipv6)}
    assert left[IPV4] == "1"
    assert left[IPV6] == ("1" if ipv6 else found[IPV6])
    assert plan_forwarding(left, ipv6=ipv6) == {}


@given(found=forwarding)
def test_no_link_loses_router_advertisements_at_any_step(found: dict[str, str]) -> None:
    now = dict(found)
    for key, value in plan_forwarding(found, ipv6=True).items():
        now[key] = value
        if now[IPV6] == "1" and found[IPV6] != "1":
            assert all(now[f"ipv6/conf/{link}/accept_ra"] != "1" for link in LINKS)


@given(found=forwarding)
def test_links_that_accept_no_router_advertisements_are_not_touched(found: dict[str, str]) -> None:
    touched = plan_forwarding(found, ipv6=True).keys()
    assert not [link for link in LINKS if f"ipv6/conf/{link}/accept_ra" in touched & _without("1", found)]


def _without(value: str, found: dict[str, str]) -> set[str]:
    return {key for key, each in found.items() if each != value}


def test_settings_are_written_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    monkeypatch.setattr(
        "cni_contrail.datapath.kernel_settings.ensure_setting", lambda path, value: written.append((path, value))
    )
    assert write_settings(str(tmp_path), {"b": "1", "a": "2"}) == 2
    assert written == [(f"{tmp_path}/net/b", b"1"), (f"{tmp_path}/net/a", b"2")]


def test_a_setting_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(SysctlError, match=r"read net\.ipv4\.ip_forward: .*/net/ipv4/ip_forward: No such file"):
        read_settings(str(tmp_path), [IPV4])
    with pytest.raises(SysctlError, match=r"set net\.ipv4\.ip_forward to 1: .*No such file"):
        write_settings(str(tmp_path), {IPV4: "1"})


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("net.ipv4.ip_forward", "1"),
        ("net.ipv6.conf.all.forwarding", "1"),
        ("net.ipv6.conf.default.accept_ra", "1"),
        ("net.ipv4.conf.br0.promote_secondaries", "0"),
    ],
)
def test_a_setting_of_a_network_that_was_changed_by_hand_is_a_repair(
    make_network: Callable[[], VirtualNetwork], setting: str, value: str
) -> None:
    network = make_network()
    before = network.run("sysctl", "-n", setting)
    network.run("sysctl", "-qw", f"{setting}={value}")
    assert network.reconcile().changes == 1
    assert network.run("sysctl", "-n", setting) == before
    assert network.reconcile().changes == 0
