"""Errors in what users write.

UserInputError
 ├─ AnnotationError  an annotation; the message names key and value
 ├─ NadError         a NetworkAttachmentDefinition; the message lists its problems
 └─ BadValueError    one value, named in the message; a caller that knows the location adds it and chains the error
"""

_MAX_LISTED = 16  # problems; the message is repeated in the events of every pod that refers to the NAD


class UserInputError(Exception):
    """Invalid user input; the message can be used in an Event."""


class AnnotationError(UserInputError):
    """An annotation is malformed or its request is invalid."""


class NadError(UserInputError):
    """A network attachment definition is invalid; the message lists the first problems, `problems` holds all."""

    def __init__(self, *problems: str) -> None:
        more = [f"and {len(problems) - _MAX_LISTED} more"] if len(problems) > _MAX_LISTED else []
        super().__init__("; ".join([*problems[:_MAX_LISTED], *more]))
        self.problems = problems


class BadValueError(UserInputError):
    """A value is invalid."""
