"""Block pool: which address is next, by node, in subnets of any size."""

import ipaddress

import pytest

from contrail_config.addressing.notation import format_address, parse_address
from contrail_config.addressing.subnet import default_gateway
from contrail_config.kubernetes.block_pool import BlockPool
from contrail_config.kubernetes.blocks import AddressEntry, Block, BlockKey, PoolKey
from contrail_config.objects import Subnet


class Pool:
    """A pool with text instead of ints, and the default gateway in each subnet."""

    def __init__(self, *cidrs: str, excluded: tuple[str, ...] = ()) -> None:
        subnets = [Subnet(cidr=cidr, gateway=default_gateway(cidr), excluded=excluded) for cidr in cidrs]
        self.family = ipaddress.ip_network(cidrs[0]).version
        self.pool = BlockPool(subnets, family=self.family)
        self.blocks: dict[int, Block] = {}
        self.time = 0.0

    def allocate(self, count: int = 1, *, node: str | None = None) -> list[str]:
        """Allocates the next `count` addresses, or as many as are free."""
        allocated: list[str] = []
        while len(allocated) < count and (address := self.pool.next_free(node)) is not None:
            self.put(address, node=node)
            allocated.append(format_address(address, family=self.family))
        return allocated

    def put(self, address: int, *, node: str | None = None) -> None:
        block = self.block(address)
        self.time += 1
        home = block.node if block.entries else node
        entries = {**block.entries, address: AddressEntry("owner")}
        self._update(Block(block.key, "1", entries, (address, self.time), home))

    def free(self, text: str) -> None:
        block = self.block(int(ipaddress.ip_address(text)))
        entries = {key: entry for key, entry in block.entries.items() if str(ipaddress.ip_address(key)) != text}
        self._update(Block(block.key, "1", entries, block.last_allocated, block.node))

    def delete(self, text: str) -> None:
        key = self.block(int(ipaddress.ip_address(text))).key
        del self.blocks[key.first]
        self.pool.update(Block(key))

    def block(self, address: int) -> Block:
        first = address - address % 64
        return self.blocks.get(first) or Block(BlockKey(PoolKey("network", self.family), first))

    def _update(self, block: Block) -> None:
        self.blocks[block.key.first] = block
        self.pool.update(block)


@pytest.mark.parametrize("node", [None, "a"])
@pytest.mark.parametrize(
    ("cidr", "addresses"),
    [
        ("10.0.0.0/29", ["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"]),
        ("10.0.0.0/31", ["10.0.0.1"]),
        ("10.0.0.5/32", ["10.0.0.5"]),
        ("0.0.0.0/30", ["0.0.0.2"]),
        ("fd00::/126", ["fd00::2", "fd00::3"]),
        ("::/127", ["::1"]),
    ],
)
def test_each_usable_address_is_allocated_once_and_then_none(node: str | None, cidr: str, addresses: list[str]) -> None:
    assert Pool(cidr).allocate(9, node=node) == addresses


def test_subnets_that_share_a_block_are_used_up() -> None:
    tested = Pool("10.0.0.0/29", "10.0.0.16/29")
    assert tested.allocate(20) == [f"10.0.0.{host}" for host in (*range(2, 7), *range(18, 23))]


def test_the_search_in_a_block_continues_after_the_last_allocated_address() -> None:
    tested = Pool("10.0.0.0/24")
    tested.allocate(3)
    tested.free("10.0.0.2")
    assert tested.allocate(2) == ["10.0.0.5", "10.0.0.6"]


def test_an_existing_block_is_used_before_a_new_one() -> None:
    tested = Pool("10.0.0.0/16")
    tested.put(int(ipaddress.ip_address("10.0.9.1")))
    assert {address.rpartition(".")[0] for address in tested.allocate(63)} == {"10.0.9"}
    assert tested.allocate() == ["10.0.0.2"]


def test_a_nearly_empty_block_drains() -> None:
    tested = Pool("10.0.0.0/16")
    tested.allocate(62 + 64 + 64 + 1)
    for host in range(64, 120):
        tested.free(f"10.0.0.{host}")
    for host in range(128, 150):
        tested.free(f"10.0.0.{host}")
    tested.free("10.0.0.192")
    tested.delete("10.0.0.192")
    assert {tested.allocate()[0].split(".")[3] for _ in range(22)} == {str(host) for host in range(128, 150)}


def test_a_node_gets_a_block_of_its_own() -> None:
    tested = Pool("10.0.0.0/16")
    assert tested.allocate(2, node="a") == ["10.0.0.2", "10.0.0.3"]
    assert tested.allocate(2, node="b") == ["10.0.0.64", "10.0.0.65"]
    assert tested.allocate(node="a") == ["10.0.0.4"]


def test_a_node_whose_blocks_are_full_gets_another_block() -> None:
    tested = Pool("10.0.0.0/16")
    tested.allocate(62, node="a")
    tested.allocate(1, node="b")
    assert tested.allocate(node="a") == ["10.0.0.128"]


def test_an_address_is_borrowed_from_the_block_with_the_most_free_addresses() -> None:
    tested = Pool("10.0.0.0/25")
    tested.allocate(20, node="a")
    tested.allocate(10, node="b")
    assert tested.allocate(node="c") == ["10.0.0.74"]


def test_a_deleted_block_can_be_used_by_another_node() -> None:
    tested = Pool("10.0.0.0/25")
    for node in ("a", "b"):
        tested.allocate(node=node)
    tested.free("10.0.0.2")
    tested.delete("10.0.0.2")
    assert tested.allocate(node="c") == ["10.0.0.2"]
    assert tested.block(int(ipaddress.ip_address("10.0.0.2"))).node == "c"


def test_an_empty_block_of_a_removed_subnet_is_not_used() -> None:
    tested = Pool("10.0.0.0/29")
    tested.allocate(5, node="a")
    first = int(ipaddress.ip_address("10.9.0.0"))
    tested.pool.update(Block(BlockKey(PoolKey("network", 4), first), "1"))
    assert tested.allocate(node="b") == []


@pytest.mark.parametrize(
    ("excluded", "first"),
    [
        (("10.0.0.0/17",), "10.0.128.0"),
        (("10.0.0.0/17", "10.0.128.0/26"), "10.0.128.64"),
        (("10.0.0.0/26", "10.0.0.64/27", "10.0.0.96/27"), "10.0.0.128"),
        (tuple(f"10.0.0.{host}" for host in range(128)), "10.0.0.128"),
    ],
)
def test_blocks_without_a_usable_address_are_skipped(excluded: tuple[str, ...], first: str) -> None:
    assert Pool("10.0.0.0/16", excluded=excluded).allocate() == [first]


def test_a_pool_of_the_family_without_subnets_has_no_address() -> None:
    pool = BlockPool([Subnet(cidr="10.0.0.0/24", gateway=None)], family=6)
    assert pool.next_free() is None
    assert pool.next_free("a") is None
    assert pool.unusable_reason(1) == "it is in no subnet of the network"
    with pytest.raises(ValueError, match="in no subnet"):
        pool.bounds(1)


def test_the_lowest_usable_address_of_each_block_is_for_its_node() -> None:
    subnet = Subnet(cidr="10.0.0.0/22", gateway="10.0.0.1", excluded=("10.0.0.64",))
    pool = BlockPool([subnet], family=4, for_nodes=True)
    first = parse_address("10.0.0.0", family=4)
    assert [pool.node_address(first + start) for start in (0, 64)] == [first + 2, first + 65]
    assert pool.next_free("a") == first + 3
    assert pool.unusable_reason(first + 65) == "it is the address of the node to which its block belongs"
    assert pool.unusable_reason(first + 66) is None


def test_networks_of_few_blocks_have_no_addresses_for_nodes() -> None:
    pool = BlockPool([Subnet(cidr="10.0.0.0/23", gateway="10.0.0.1")], family=4, for_nodes=True)
    first = parse_address("10.0.0.0", family=4)
    assert pool.node_address(first) is None
    assert pool.next_free("a") == first + 2


def test_blocks_that_belong_to_no_node_have_none_for_nodes() -> None:
    pool = BlockPool([Subnet(cidr="10.0.0.0/20", gateway="10.0.0.1")], family=4)
    assert pool.node_address(parse_address("10.0.0.64", family=4)) is None
