"""A NAD as the source last told, what it defines, and what its owner was told."""

from manager.parsing.errors import NadError
from manager.parsing.nad import parse_nad
from manager.parsing.network_definition import ForeignDefinition, NetworkDefinition
from manager.reasons import Reason
from manager.source import Nad


class NadRecord:
    """Made anew whenever the source tells something new of it, so that whoever works on an older one can see that.

    `definition` is None if what it defines is wrong; `problem` says how. `replaces`: another NAD had its name before,
    whose network may still be there. `told` is what its owner was told last.
    """

    __slots__ = ("definition", "nad", "problem", "replaces", "told")

    def __init__(self, nad: Nad, before: "NadRecord | None", *, another_ended: bool, default_mtu: int) -> None:
        self.nad = nad
        self.replaces = another_ended or before is not None
        self.told: tuple[Reason, str] | None = None
        if before is not None and before.nad.uid == nad.uid:
            self.replaces, self.told = before.replaces, before.told
        self.definition: NetworkDefinition | ForeignDefinition | None = None
        self.problem = ""
        try:
            self.definition = parse_nad(nad, default_mtu=default_mtu)
        except NadError as error:
            self.problem = str(error)
