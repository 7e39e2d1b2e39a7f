"""Owner of a node's own address in an address block: `node/` and its name, where other owners are uuids."""

from typing import Final

_PREFIX: Final = "node/"


def node_owner(node: str) -> str:
    """Returns the owner that stands for a node."""
    return _PREFIX + node


def is_node_owner(owner: str) -> bool:
    """Returns whether the owner stands for a node."""
    return owner.startswith(_PREFIX)


def node_of_owner(owner: str) -> str | None:
    """Returns the node for which the owner stands, None if it is an interface."""
    return owner.removeprefix(_PREFIX) if is_node_owner(owner) else None
