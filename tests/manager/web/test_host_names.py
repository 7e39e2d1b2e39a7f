"""Host names by which browsers reach the API: a name that anybody can give to this machine is not one of them."""

import pytest

from manager.parsing.errors import BadValueError
from manager.web.host_names import HostNames, host_name_pattern


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LocalHost:8083",
        "localhost.:8083",
        "shop.localhost",
        "127.0.0.1:8083",
        "192.0.2.7",
        "[::1]:8083",
        "[2001:db8::7]",
        "contrail-manager.contrail.svc",
        "contrail-manager.contrail.svc.cluster.local:8083",
    ],
)
def test_loopback_names_addresses_and_service_names_are_allowed(host: str) -> None:
    assert HostNames().allow(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "rebound.example",
        "localhost.rebound.example",
        "127.0.0.1.rebound.example",
        "rebound.example:8083",
        "svc",
        "xsvc",
        "notlocalhost",
        "127.0.0.1:8083:8083",
        "[::1",
        "[localhost]",
        "[127.0.0.1.rebound.example]",
        "a" * 300,
        "localhost\n",
        "localhost:99999999",
    ],
)
def test_other_names_and_malformed_headers_are_not(host: str) -> None:
    assert not HostNames().allow(host)


def test_configured_names_are_allowed_as_they_are_or_with_all_below_them() -> None:
    names = HostNames(["node-1", "Networks.example.org", "*.lab.example.org"])
    allowed = ("node-1", "networks.example.org:80", "a.lab.example.org", "a.b.lab.example.org")
    assert all(map(names.allow, allowed))
    assert not any(map(names.allow, ("node-2", "x.networks.example.org", "lab.example.org", "alab.example.org")))


@pytest.mark.parametrize("text", ["a", "a.example", "*.example.org", "A_b-c.example"])
def test_a_setting_is_a_name_or_all_below_a_name(text: str) -> None:
    assert host_name_pattern(text) == text


@pytest.mark.parametrize("text", ["", "*", "*.", "a b", "http://a", "a:80", "a/b", "a.*.b", ".a", "a" * 300])
def test_any_other_setting_is_rejected(text: str) -> None:
    with pytest.raises(BadValueError, match="neither a host name"):
        host_name_pattern(text)
