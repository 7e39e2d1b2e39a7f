"""Record of a NAD: its last state from the source, its parsed definition, and the last event reported on it."""

from contrail_config.objects import FqName
from manager.parsing.errors import NadError
from manager.parsing.nad import FORWARDING_MODE_KEY, parse_nad
from manager.parsing.nad_network import CIDR_KEY
from manager.parsing.network_definition import ForeignDefinition, NetworkDefinition
from manager.parsing.network_reference import NETWORK_KEY
from manager.reasons import Reason
from manager.source import Nad


class NadRecord:
    """Created for each new state of the NAD, so that a worker can see that its record is outdated.

    It is parsed when that is first needed: a state that is replaced before costs nothing. `replaces`: the name belonged
    to another NAD before, whose network may still exist. `reported` is the last event on the NAD.
    """

    __slots__ = ("_default_mtu", "_parsed", "nad", "replaces", "reported")

    def __init__(self, nad: Nad, before: "NadRecord | None", *, another_ended: bool, default_mtu: int | None) -> None:
        self.nad = nad
        self.replaces = another_ended or before is not None
        self.reported: tuple[Reason, str] | None = None
        if before is not None and before.nad.uid == nad.uid:
            self.replaces, self.reported = before.replaces, before.reported
        self._default_mtu = default_mtu
        self._parsed: tuple[NetworkDefinition | ForeignDefinition | None, str] | None = None

    @property
    def definition(self) -> NetworkDefinition | ForeignDefinition | None:
        """The parsed definition; None if the NAD is invalid."""
        return self.parse()[0]

    @property
    def problem(self) -> str:
        """Why the NAD is invalid; empty if it is valid."""
        return self.parse()[1]

    @property
    def reference(self) -> FqName | None:
        """The network that the NAD refers to; None if it has subnets of its own, or is invalid."""
        if NETWORK_KEY not in self.nad.annotations or CIDR_KEY in self.nad.annotations:
            return None  # the usual case, without parsing
        definition = self.definition
        return definition.reference if isinstance(definition, NetworkDefinition) else None

    @property
    def states_forwarding_mode(self) -> bool:
        """Whether the NAD's author chooses the forwarding mode, not the manager."""
        return FORWARDING_MODE_KEY in self.nad.annotations

    def parse(self) -> tuple[NetworkDefinition | ForeignDefinition | None, str]:
        """Returns definition and problem. The first call may take tenths of a second."""
        if self._parsed is None:
            try:
                self._parsed = parse_nad(self.nad, default_mtu=self._default_mtu), ""
            except NadError as error:
                self._parsed = None, str(error)
        return self._parsed
