"""What a store answers when it cannot do as asked.

    StoreError
     ├─ NotFoundError            the object is not there
     ├─ ConflictError            another object has the name, or a newer one has the place
     ├─ InUseError               the network still has interfaces
     ├─ AddressUnavailableError  the wished address cannot be given; `reason` says why
     ├─ ExhaustedError           no address of the family is free in the network
     └─ StoreUnavailableError    the store itself: locked by another process, damaged, closed
         └─ StoreRefusedError    it takes this object from nobody, or nothing from us: rights, quota, admission, size

Messages name the object; the cause is chained.
"""


class StoreError(Exception):
    """Root of everything that a store raises."""


class NotFoundError(StoreError):
    """The object is not there."""


class ConflictError(StoreError):
    """Another object bears the name, or holds the place that was asked for."""


class InUseError(StoreError):
    """The network cannot go: interfaces still have addresses in it."""


class AddressUnavailableError(StoreError):
    """The wished address cannot be given; `free_in`: seconds until it can be, if that is only a matter of its hold."""

    def __init__(self, address: str, network: str, reason: str, *, free_in: float | None = None) -> None:
        super().__init__(f"address {address} of network {network} cannot be given: {reason}")
        self.address = address
        self.network = network
        self.reason = reason
        self.free_in = free_in


class ExhaustedError(StoreError):
    """No address of the family is free in the network; some may be held back for a while after their release."""

    def __init__(self, network: str, family: int, *, next_free_in: float | None) -> None:
        wait = "" if next_free_in is None else f", the next one comes free in {next_free_in:.0f} s"
        super().__init__(f"network {network} has no free IPv{family} address{wait}")
        self.network = network
        self.family = family
        self.next_free_in = next_free_in


class StoreUnavailableError(StoreError):
    """The store cannot serve: locked by another process, damaged, of a newer version, or closed."""


class StoreRejectedError(StoreUnavailableError):
    """The store may be well, but does not take this: for want of rights or quota, by its admission, or for its size.

    The same may be taken later, when somebody has changed that.
    """
