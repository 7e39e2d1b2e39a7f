"""Maps of addresses: of all of an IPv4 subnet, and of the part of an IPv6 subnet that is in use."""

import ipaddress
import random
from functools import partial
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import ONE_BROWSER, Show

pytestmark = ONE_BROWSER

PARTS = """async ([subnet, addresses]) => {
  const { partsOf } = await import("/web/address_parts.js");
  const { parts } = partsOf(subnet, addresses);
  return parts.map((each) => [String(each.first), Number(each.size), each.used, each.held, Number(each.reserved)]);
}"""
TEXT = """async ([number, family]) => {
  const { addressText, numberOf } = await import("/web/addresses.js");
  const text = addressText(BigInt(number), family);
  return [text, String(numberOf(text))];
}"""


def parts(page: Page, subnet: dict[str, Any], *addresses: str) -> list[list[Any]]:
    """First number, size, and numbers of used, held and reserved addresses of each part."""
    found: list[list[Any]] = page.evaluate(PARTS, [subnet, [{"address": each, "state": "Used"} for each in addresses]])
    return found


def number(address: str) -> int:
    return int(ipaddress.ip_address(address))


def test_an_ipv6_network_has_a_map_of_what_is_in_use(show_still: Show) -> None:
    page = show_still("networks/demo/green")
    name = "Addresses of fd00:2::/64, from fd00:2::2 to fd00:2::2: 1 used, 0 held, 0 never given, 0 free"
    expect(page.get_by_role("img", name=name)).to_be_visible()
    assert page.locator(".map > svg > g > title").all_text_contents() == ["fd00:2::2: used by demo/web"]


def test_a_map_of_ipv6_reaches_from_the_first_to_the_last_address_in_use(show_still: Show) -> None:
    page = show_still("events")
    subnet = {"cidr": "fd00::/64", "gateway": "fd00::1", "excluded": ["fd00::10/124"]}
    found = parts(page, subnet, "fd00::2", "fd00::21")
    assert [int(each[0]) for each in found] == list(range(number("fd00::2"), number("fd00::22")))
    assert (sum(each[2] for each in found), sum(each[4] for each in found)) == (2, 16)
    far = parts(page, subnet, "fd00::2", "fd00::ffff:ffff:ffff:fffe")
    assert len(far) == 256
    assert (far[0][2], far[-1][2]) == (1, 1)
    assert far[0][4] == 18  # the anycast address, the gateway, and what is excluded
    assert parts(page, subnet) == []
    assert len(parts(page, {"cidr": "fd00::/120"})) == 256


@pytest.mark.parametrize(
    "address", ["::", "::1", "fd00::1", "1:0:0:2::3", "2001:db8::1:0:0:1", "1:2:3:4:5:6:7:8", "1::"]
)
def test_an_ipv6_address_is_written_as_rfc_5952_has_it(show_still: Show, address: str) -> None:
    page = show_still("events")
    assert page.evaluate(TEXT, [str(number(address)), 6]) == [str(ipaddress.ip_address(address)), str(number(address))]


def test_parts_are_those_of_a_plain_count(show_still: Show) -> None:
    page = show_still("events")
    chance = random.Random(19)
    for prefix in (16, 20, 24, 28, 30, 31, 32):
        network = ipaddress.ip_network(f"10.{prefix}.0.0/{prefix}")
        anywhere = partial(chance.randrange, network.num_addresses)
        lengths = [32 - chance.randint(0, 4) for _ in range(9)]
        ranges = [ipaddress.ip_network((int(network[anywhere()]), length), strict=False) for length in lengths]
        used = {str(network[anywhere()]) for _ in range(40)}
        gateway = str(network[min(1, network.num_addresses - 1)])
        never = {each for part in ranges for each in part} | {ipaddress.ip_address(gateway)}
        if prefix < 31:
            never |= {network[0], network[-1]}
        never = {each for each in never if each in network and str(each) not in used}
        subnet = {"cidr": str(network), "gateway": gateway, "excluded": [str(each) for each in ranges]}
        found = parts(page, subnet, *used)
        size = max(1, network.num_addresses // 256)
        for index, (first, found_size, in_use, _, reserved) in enumerate(found):
            low = int(network[0]) + index * size
            inside = range(low, low + size)
            assert (int(first), found_size) == (low, size)
            assert in_use == sum(number(each) in inside for each in used)
            assert reserved == sum(int(each) in inside for each in never)
