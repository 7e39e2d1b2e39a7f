"""Everything that is wrong with one object, so that its author hears of it all at once and not one by one."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from manager.parsing.errors import UserInputError

V = TypeVar("V")
R = TypeVar("R")


class Setting(NamedTuple):
    """Values as a user stated them, and the place (annotation, key of a configuration) where they stand."""

    place: str
    values: Sequence[str] = ()


class ValidationErrors:
    """Collects problems, each a sentence that begins with the place."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def add(self, place: str, problem: str) -> None:
        """Notes a problem."""
        self.problems.append(f"{place}: {problem}")

    def parse(self, place: str, read: Callable[[V], R], value: V) -> R | None:
        """What `read` makes of the value; None if it raises UserInputError, which is noted."""
        try:
            return read(value)
        except UserInputError as error:
            self.add(place, str(error))
            return None

    def parse_each(self, place: str, read: Callable[[V], R], values: Iterable[V]) -> list[R]:
        """What `read` makes of those values for which it does not raise UserInputError; the others are noted."""
        results = (self.parse(place, read, value) for value in values)
        return [result for result in results if result is not None]
