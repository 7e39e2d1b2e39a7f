"""Address blocks: encoding, content after a restart, and deletion of empty blocks."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrail_config.addressing.notation import parse_address
from contrail_config.kubernetes.allocation_cache import CLEANUP_DELAY
from contrail_config.kubernetes.blocks import (
    AddressEntry,
    Block,
    BlockKey,
    Hold,
    PoolKey,
    decode_block,
    has_allocations,
)
from contrail_config.kubernetes.kinds import NETWORK_LABEL, AddressBlockObject, Document, FullMetadata
from contrail_config.steady_clock import SteadyClock
from tests.contrail_config.kubernetes.managers import OpenManager
from tests.support.address_blocks import block_entries
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_clock import FakeClock
from tests.support.stored_objects import BLOCK_KIND, allocated_addresses
from tests.support.virtual_networks import allocate_one, make_network, new_owner

times = st.floats(min_value=0, max_value=2e9)
nodes = st.sampled_from(["worker-1", "node.example.com", "1.0"])


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    family, width = draw(st.sampled_from([(4, 32), (6, 128)]))
    first = draw(st.integers(0, 2**width - 64)) // 64 * 64
    owners = st.uuids().map(str)
    unknown = st.sampled_from([(), ("a=1",), ("a=1", "b=@2")])
    allocated = st.builds(AddressEntry, owners, st.none(), st.none() | nodes, unknown)
    held = st.builds(AddressEntry, owners, st.builds(Hold, times, times, st.none()), st.none() | nodes, unknown)
    entries = draw(st.dictionaries(st.integers(first, first + 63), allocated | held))
    last_allocated = draw(st.none() | st.tuples(st.integers(first, first + 63), times))
    return Block(BlockKey(PoolKey(new_owner(), family), first), "7", entries, last_allocated, draw(st.none() | nodes))


def as_stored(block: Block) -> Document:
    return msgspec.json.decode(msgspec.json.encode(block.to_object()), type=Document)


@given(blocks())
def test_a_block_survives_encoding_and_decoding(block: Block) -> None:
    assert decode_block(as_stored(block)) == block


@given(blocks())
def test_names_of_blocks_are_valid_in_urls_and_unique(block: Block) -> None:
    name = block.key.name
    assert set(name) <= set("0123456789abcdef-")
    assert name[0] != "-" != name[-1]
    assert len(name) <= 253
    assert name != BlockKey(block.key.pool, block.key.first ^ 64).name


def test_the_clock_of_a_store_ignores_changes_of_the_system_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SteadyClock()
    before = clock()
    monkeypatch.setattr("time.time", lambda: 0.0)
    assert 0 <= clock() - before < 5


async def test_the_search_continues_after_the_last_allocated_address_after_a_restart(
    open_manager: OpenManager, clock: FakeClock
) -> None:
    first = await open_manager()
    network = await first.put_network(make_network("wide", "10.1.0.0/16"))
    await allocate_one(first, network, address="10.1.9.9")
    clock.advance(1)
    owner = new_owner()
    await allocate_one(first, network, owner, address="10.1.5.5")
    await first.release([owner], hold=5)
    assert await allocate_one(await open_manager(), network) == "10.1.5.6"


async def test_an_empty_block_is_deleted(open_manager: OpenManager, clock: FakeClock, server: FakeApiServer) -> None:
    manager = await open_manager()
    network = await manager.put_network(make_network("wide", "10.1.0.0/16"))
    owner = new_owner()
    await allocate_one(manager, network, owner, address="10.1.5.5")
    await manager.release([owner], hold=5)
    assert len(server.storage.objects(BLOCK_KIND)) == 1
    clock.advance(5)
    await allocate_one(manager, network, address="10.1.7.7")
    assert len(server.storage.objects(BLOCK_KIND)) == 2
    clock.advance(CLEANUP_DELAY)
    await manager.release([new_owner()])
    assert {address for _, address in allocated_addresses(server)} == {"10.1.7.7"}
    assert len(server.storage.objects(BLOCK_KIND)) == 1


async def test_an_expired_hold_is_removed_with_the_next_write_of_its_block(
    open_manager: OpenManager, clock: FakeClock, server: FakeApiServer
) -> None:
    manager = await open_manager()
    network = await manager.put_network(make_network())
    owner = new_owner()
    await allocate_one(manager, network, owner)
    await manager.release([owner], hold=5)
    clock.advance(5)
    await allocate_one(manager, network)
    (block,) = server.storage.objects(BLOCK_KIND).values()
    assert [one.address for one in block_entries([block])] == ["10.1.0.3"]
    assert block["status"] == {"given": 1, "held": 0, "borrowed": 0}


async def test_an_invalid_block_is_ignored(open_manager: OpenManager, server: FakeApiServer) -> None:
    spec = {"network": "n", "first": "10.1.0.0", "addresses": "nonsense o\n"}
    manager = await open_manager()
    server.storage.put(BLOCK_KIND, {"metadata": {"name": "invalid", "uid": "u"}, "spec": spec})
    network = await manager.put_network(make_network())
    assert await allocate_one(manager, network) == "10.1.0.2"


@given(blocks())
def test_a_block_has_allocations_if_an_entry_is_not_held(block: Block) -> None:
    wire = msgspec.json.encode(block.to_object())
    stored = msgspec.json.decode(wire, type=AddressBlockObject)
    assert has_allocations(stored) == any(entry.hold is None for entry in block.entries.values())


@pytest.mark.parametrize(
    "line",
    [
        "10.1.0.3",
        "10.1.0.3 o 1.0",
        "10.1.0.3 o 1.0 2.0 3.0",
        "10.1.0.3 o now then",
        "10.1.0.3 o @n 1.0",
        "10.1.0.3 o 1.0 inf",
        "10.1.0.3 o nan nan",
        "o 10.1.0.3",
    ],
)
def test_an_invalid_line_raises_an_error(line: str) -> None:
    key = BlockKey(PoolKey(new_owner(), 4), parse_address("10.1.0.0", family=4))
    spec = {"network": key.pool.network_uuid, "first": "10.1.0.0", "addresses": "10.1.0.2 o\n"}
    item = Document(FullMetadata(name=key.name, labels={NETWORK_LABEL: key.pool.network_uuid}), spec)
    assert decode_block(item).entries
    spec["addresses"] += f"{line}\n"
    with pytest.raises(ValueError):  # noqa: PT011 - of many kinds, and only logged
        decode_block(item)
