"""The ways in which the plugin is put on a node; all tests can run by either."""

from typing import Protocol

from tests.e2e.machine import Machine
from tests.e2e.node import COMMANDS, NETWORK


class Way(Protocol):
    """`name` is a part of test ids."""

    name: str

    def install(self, machine: Machine) -> None:
        """Puts the plugin at its place, with all that it needs to answer calls."""


class EntryPoint:
    """The Python entry point: all of the plugin in the process of each call."""

    name = "entry point"

    def install(self, machine: Machine) -> None:
        machine.run("ln", "-s", str(COMMANDS / NETWORK), "/opt/cni/bin/")
