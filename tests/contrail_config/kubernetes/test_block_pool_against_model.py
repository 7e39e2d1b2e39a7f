"""Block pool against a model: sets of addresses, and the node of each block."""

import ipaddress

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from contrail_config.addressing.pool import AddressPool
from contrail_config.kubernetes.block_pool import BlockPool
from contrail_config.kubernetes.blocks import SIZE, AddressEntry, Block, BlockKey, PoolKey
from contrail_config.objects import Subnet

CIDRS = ["10.0.0.0/28", "10.0.0.64/27", "10.0.1.0/24", "10.0.2.4/31", "10.0.2.9/32", "10.0.3.0/30", "10.0.4.0/24"]
EXCLUDED = ["10.0.0.4/30", "10.0.1.0/26", "10.0.1.64/27", "10.0.4.0/25", "10.0.4.192/27", "10.0.4.7", "10.0.0.64/27"]
NODES = ["a", "b", "c", "d"]


class BlockPoolAgainstModel(RuleBasedStateMachine):
    """`blocks` are those that exist, `sealed` those from which nothing is allocated."""

    @initialize(
        cidrs=st.lists(st.sampled_from(CIDRS), min_size=1, unique=True),
        excluded=st.lists(st.sampled_from(EXCLUDED), unique=True),
        with_nodes=st.booleans(),
    )
    def make(self, cidrs: list[str], excluded: list[str], with_nodes: bool) -> None:
        subnets = [Subnet(cidr=cidr, gateway=None, excluded=tuple(excluded)) for cidr in cidrs]
        self.pool = BlockPool(subnets, family=4)
        reasons = AddressPool(subnets, family=4)
        self.usable = {
            int(address)
            for cidr in cidrs
            for address in ipaddress.IPv4Network(cidr)
            if reasons.unavailable_reason(int(address)) is None
        }
        self.possible = {address // SIZE for address in self.usable}
        self.nodes = NODES if with_nodes else [None]
        self.blocks: dict[int, Block] = {}
        self.sealed: set[int] = set()
        self.time = 0.0

    def free_in(self, blocks: set[int]) -> set[int]:
        """Free addresses of blocks that are not sealed."""
        return {
            address
            for address in self.usable
            if address // SIZE in blocks - self.sealed and address not in self.block(address // SIZE).entries
        }

    def block(self, number: int) -> Block:
        return self.blocks.get(number) or Block(BlockKey(PoolKey("network", 4), number * SIZE))

    def store(self, block: Block) -> None:
        number = block.key.first // SIZE
        if block.entries or block.version:
            self.blocks[number] = block
        else:
            self.blocks.pop(number, None)
        self.pool.update(block)

    def put(self, address: int, node: str | None) -> None:
        block = self.block(address // SIZE)
        self.time += 1
        home = block.node if block.entries else node
        self.store(Block(block.key, "1", {**block.entries, address: AddressEntry("x")}, (address, self.time), home))

    @rule(data=st.data(), count=st.integers(1, 150))
    def allocate(self, data: st.DataObject, count: int) -> None:
        node = data.draw(st.sampled_from(self.nodes))
        for _ in range(count):
            address = self.pool.next_free(node)
            own = {number for number, block in self.blocks.items() if node is None or block.node == node}
            if address is None:
                assert not self.free_in(self.possible)
                return
            assert address in self.free_in(self.possible)
            number = address // SIZE
            if number not in own:
                assert not self.free_in(own)  # nothing is taken from elsewhere while it has room
            if node is not None and number in self.blocks and number not in own:  # borrowed
                most = max(len(self.free_in({other})) for other in self.blocks)
                assert not self.blocks[number].entries or len(self.free_in({number})) == most
            self.put(address, node)

    @rule(data=st.data())
    def request(self, data: st.DataObject) -> None:
        free = sorted(self.free_in(self.possible))
        if free:
            self.put(data.draw(st.sampled_from(free)), data.draw(st.sampled_from(self.nodes)))

    @precondition(lambda self: self.blocks)
    @rule(data=st.data(), share=st.integers(1, 4))
    def release(self, data: st.DataObject, share: int) -> None:
        block = self.blocks[data.draw(st.sampled_from(sorted(self.blocks)))]
        kept = {address: entry for address, entry in block.entries.items() if address % share}
        self.store(Block(block.key, "2", kept, block.last_allocated, block.node))

    @precondition(lambda self: any(not block.entries for block in self.blocks.values()))
    @rule()
    def delete_empty_blocks(self) -> None:
        for block in list(self.blocks.values()):
            if not block.entries:
                self.store(Block(block.key))

    @rule(data=st.data())
    def seal(self, data: st.DataObject) -> None:
        numbers = sorted((self.possible | self.blocks.keys()) - self.sealed)
        if numbers:
            self.sealed.add(number := data.draw(st.sampled_from(numbers)))
            self.pool.seal(self.block(number))

    @precondition(lambda self: self.sealed)
    @rule(data=st.data())
    def unseal(self, data: st.DataObject) -> None:
        self.sealed.discard(number := data.draw(st.sampled_from(sorted(self.sealed))))
        self.pool.unseal(self.block(number))

    @invariant()
    def a_node_without_a_block_gets_one_while_there_is_one(self) -> None:
        if getattr(self, "nodes", None) == NODES and (address := self.pool.next_free("new")) is not None:
            unused = {number for number in self.possible - self.sealed if not self.block(number).entries}
            assert (address // SIZE in unused) == bool(unused)


TestBlockPoolAgainstModel = BlockPoolAgainstModel.TestCase
TestBlockPoolAgainstModel.settings = settings(max_examples=50, stateful_step_count=20)
