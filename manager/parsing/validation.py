"""Collects all validation errors of one object, so that its author sees them all at once."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from manager.parsing.errors import UserInputError

V = TypeVar("V")
R = TypeVar("R")


class Setting(NamedTuple):
    """Values that a user wrote; `location` is the annotation or configuration key that holds them."""

    location: str
    values: Sequence[str] = ()


class ValidationErrors:
    """Errors of one object, each a text that begins with the location."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def add(self, location: str, problem: str) -> None:
        """Adds an error."""
        self.problems.append(f"{location}: {problem}")

    def parse(self, location: str, parser: Callable[[V], R], value: V) -> R | None:
        """Returns the parsed value; if the parser raises UserInputError, adds the error and returns None."""
        try:
            return parser(value)
        except UserInputError as error:
            self.add(location, str(error))
            return None

    def parse_each(self, location: str, parser: Callable[[V], R], values: Iterable[V]) -> list[R]:
        """Returns the values that could be parsed, and adds the errors of the others."""
        results = (self.parse(location, parser, value) for value in values)
        return [result for result in results if result is not None]
