"""Errors raised by the stores.

    StoreError
     ├─ NotFoundError            the object does not exist
     ├─ ConflictError            another object has the name, or a newer one took the place
     ├─ InUseError               the network still has interfaces
     ├─ AddressUnavailableError  the requested address is not available; `reason` says why
     ├─ InvalidTokenError        a page was asked for by a token of another list
     ├─ ExhaustedError           the network has no free address of the family
     └─ StoreUnavailableError    the store itself fails: locked by another process, damaged, closed
         ├─ StoreRejectedError   the store rejects this object or this client: permissions, quota, admission, size
         ├─ StoreFullError       the disk is full: writes fail until there is space
         └─ AddressesLostError   somebody else deleted a record of allocated addresses: the process must start again

Messages name the object; the cause is chained.
"""


class StoreError(Exception):
    """Base of every error that a store raises."""


class NotFoundError(StoreError):
    """The object does not exist."""


class ConflictError(StoreError):
    """Another object has the name, the number or the place.

    `holder` is the uuid of the virtual machine that has the name, if that is the conflict.
    """

    def __init__(self, message: str, *, holder: str | None = None) -> None:
        super().__init__(message)
        self.holder = holder


class InUseError(StoreError):
    """The network cannot be deleted while interfaces have addresses in it."""


class AddressUnavailableError(StoreError):
    """The requested address is not available; `free_in` is the rest of its hold in seconds, None if it is not held."""

    def __init__(self, address: str, network: str, reason: str, *, free_in: float | None = None) -> None:
        super().__init__(f"network {network}: address {address} is not available: {reason}")
        self.address = address
        self.network = network
        self.reason = reason
        self.free_in = free_in

    def of_network(self, network: str) -> "AddressUnavailableError":
        """Returns the same error about another network."""
        return AddressUnavailableError(self.address, network, self.reason, free_in=self.free_in)


class InvalidTokenError(StoreError):
    """A page was asked for by what is not a token of this list."""

    def __init__(self) -> None:
        super().__init__("continue: not a token of this list")


class ExhaustedError(StoreError):
    """The network has no free address of the family.

    `next_free_in`: seconds until one may be free, such as the rest of the earliest hold; None if that is not known.
    """

    def __init__(self, network: str, family: int, *, next_free_in: float | None) -> None:
        wait = "" if next_free_in is None else f", the next one may be free in {next_free_in:.0f} s"
        super().__init__(f"network {network}: no free IPv{family} address{wait}")
        self.network = network
        self.family = family
        self.next_free_in = next_free_in

    def of_network(self, network: str) -> "ExhaustedError":
        """Returns the same error about another network."""
        return ExhaustedError(network, self.family, next_free_in=self.next_free_in)


class StoreUnavailableError(StoreError):
    """The store cannot serve: locked by another process, damaged, written by a newer release, or closed."""


class StoreRejectedError(StoreUnavailableError):
    """The store rejects the request: missing permissions, quota, admission, or size.

    The store itself may be healthy. The same request may succeed once somebody has changed that.
    """


class StoreFullError(StoreUnavailableError):
    """The disk of the store is full: writes fail until there is space, reads do not."""


class AddressesLostError(StoreUnavailableError):
    """Somebody else deleted a record of allocated addresses: no address is allocated before a recovery at start."""
