"""Reference to an object of the server."""

from typing import Any, NamedTuple


class Reference(NamedTuple):
    """Target of a reference: both forms of its identity, since creates read `to` and updates read `uuid`."""

    kind: str
    uuid: str
    fq_name: tuple[str, ...]

    def json(self, attributes: dict[str, Any] | None = None) -> dict[str, Any]:
        """Returns the reference as in a body."""
        shown: dict[str, Any] = {"to": list(self.fq_name), "uuid": self.uuid}
        return shown if attributes is None else {**shown, "attr": attributes}
