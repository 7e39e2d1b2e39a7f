"""Record of a NAD: its last state from the source, its parsed definition, and the last event reported on it."""

from manager.parsing.errors import NadError
from manager.parsing.nad import parse_nad
from manager.parsing.network_definition import ForeignDefinition, NetworkDefinition
from manager.reasons import Reason
from manager.source import Nad


class NadRecord:
    """Created for each new state of the NAD, so that a worker can see that its record is outdated.

    `definition` is None if the NAD is invalid; `problem` says why. `replaces`: the name belonged to another NAD before,
    whose network may still exist. `reported` is the last event on the NAD.
    """

    __slots__ = ("definition", "nad", "problem", "replaces", "reported")

    def __init__(self, nad: Nad, before: "NadRecord | None", *, another_ended: bool, default_mtu: int) -> None:
        self.nad = nad
        self.replaces = another_ended or before is not None
        self.reported: tuple[Reason, str] | None = None
        if before is not None and before.nad.uid == nad.uid:
            self.replaces, self.reported = before.replaces, before.reported
        self.definition: NetworkDefinition | ForeignDefinition | None = None
        self.problem = ""
        try:
            self.definition = parse_nad(nad, default_mtu=default_mtu)
        except NadError as error:
            self.problem = str(error)
