"""Address pool against a model: a dict with the state of each address."""

import ipaddress

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from contrail_config.addressing.pool import AddressPool
from contrail_config.objects import Subnet

CIDRS = ["10.0.0.0/28", "10.0.0.64/27", "10.0.1.0/25", "10.0.2.4/31", "10.0.2.9/32", "10.0.3.0/30"]


class PoolAgainstModel(RuleBasedStateMachine):
    """`state` maps addresses to "allocated" or "held"; all other usable addresses are free."""

    @initialize(cidrs=st.lists(st.sampled_from(CIDRS), min_size=1, unique=True), data=st.data())
    def make(self, cidrs: list[str], data: st.DataObject) -> None:
        self.networks = [ipaddress.IPv4Network(cidr) for cidr in cidrs]
        everything = [str(address) for network in self.networks for address in network]
        ranges = ["10.0.0.4/30", "10.0.0.8/31", "10.0.1.64/26", "10.0.2.4/31", "10.0.1.32/27"]
        excluded = tuple(data.draw(st.lists(st.sampled_from(everything + ranges), max_size=5)))
        gateways = [data.draw(st.none() | st.sampled_from([str(each) for each in net])) for net in self.networks]
        self.pool = AddressPool(
            [Subnet(cidr=c, gateway=g, excluded=excluded) for c, g in zip(cidrs, gateways, strict=True)], family=4
        )
        never = {int(a) for each in (*excluded, *filter(None, gateways)) for a in ipaddress.IPv4Network(each)}
        self.usable = [{int(a) for a in (net if net.prefixlen >= 31 else net.hosts())} - never for net in self.networks]
        self.state: dict[int, str] = {}
        self.last = [int(net.network_address) - 1 for net in self.networks]

    def expected(self) -> int | None:
        """The first free address after the last allocated one, cyclically, in the first subnet that has one."""
        for usable, last in zip(self.usable, self.last, strict=True):
            if free := sorted(usable - self.state.keys()):
                return next((address for address in free if address > last), free[0])
        return None

    def mark_allocated(self, address: int) -> None:
        self.pool.mark_allocated(address)
        self.state[address] = "allocated"
        home = next(i for i, net in enumerate(self.networks) if ipaddress.IPv4Address(address) in net)
        self.last[home] = address

    @rule(count=st.integers(1, 40))
    def allocate(self, count: int) -> None:
        for _ in range(count):
            address = self.pool.next_free()
            assert address == self.expected()
            if address is not None:
                self.mark_allocated(address)

    @rule(data=st.data())
    def request(self, data: st.DataObject) -> None:
        network = data.draw(st.sampled_from(self.networks))
        address = int(data.draw(st.sampled_from(list(network))))
        available = any(address in usable for usable in self.usable) and address not in self.state
        assert (self.pool.unavailable_reason(address) is None) == available
        if available:
            self.mark_allocated(address)

    @precondition(lambda self: self.state)
    @rule(data=st.data(), held=st.booleans())
    def release(self, data: st.DataObject, held: bool) -> None:
        address = data.draw(st.sampled_from(sorted(self.state)))
        if held:
            self.pool.mark_held(address)
            self.state[address] = "held"
        else:
            self.pool.mark_free(address)
            del self.state[address]

    @invariant()
    def every_reason_fits_the_state(self) -> None:
        reasons = {
            "allocated": "it is already allocated to another interface",
            "held": "it is still held after its release",
        }
        for address, state in getattr(self, "state", {}).items():
            assert self.pool.unavailable_reason(address) == reasons[state]


TestPoolAgainstModel = PoolAgainstModel.TestCase
