"""Tunnel addresses of nodes: from the Node object, or from its annotation."""

import msgspec
import pytest

from contrail_config.kubernetes.node_addresses import TUNNEL_ADDRESSES_KEY, NodeObject, tunnel_addresses


def node(*addresses: tuple[str, str], annotation: str | None = None) -> NodeObject:
    """A node with these types and addresses, as the API server sends it."""
    annotations = {"other": "x"} | ({} if annotation is None else {TUNNEL_ADDRESSES_KEY: annotation})
    status = {"addresses": [{"type": kind, "address": address} for kind, address in addresses], "phase": "x"}
    return msgspec.convert({"metadata": {"name": "n", "annotations": annotations}, "status": status}, NodeObject)


def test_the_first_internal_address_of_each_family_counts() -> None:
    found = node(
        ("Hostname", "n"),
        ("ExternalIP", "203.0.113.1"),
        ("InternalIP", "fd00:1::1"),
        ("InternalIP", "192.0.2.1"),
        ("InternalIP", "192.0.2.2"),
    )
    assert tunnel_addresses(found) == ("fd00:1::1", "192.0.2.1")


def test_addresses_that_no_other_node_reaches_do_not_count() -> None:
    names = ("127.0.0.1", "fe80::1", "0.0.0.0", "224.0.0.1", "nonsense", "192.0.2.1")
    assert tunnel_addresses(node(*(("InternalIP", name) for name in names))) == ("192.0.2.1",)


def test_a_node_without_addresses_has_none() -> None:
    assert tunnel_addresses(msgspec.convert({"metadata": {"name": "n"}}, NodeObject)) == ()


def test_the_annotation_replaces_the_addresses_of_the_node() -> None:
    found = node(("InternalIP", "192.0.2.1"), annotation="198.51.100.7, fd00:0:0::7")
    assert tunnel_addresses(found) == ("198.51.100.7", "fd00::7")


@pytest.mark.parametrize("text", ["", "x", "198.51.100.7,", "127.0.0.1", "198.51.100.7/24"])
def test_an_invalid_annotation_is_logged_and_has_no_effect(text: str, caplog: pytest.LogCaptureFixture) -> None:
    assert tunnel_addresses(node(("InternalIP", "192.0.2.1"), annotation=text)) == ("192.0.2.1",)
    assert f"node n: {TUNNEL_ADDRESSES_KEY}" in caplog.text
