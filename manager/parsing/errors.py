"""What users wrote wrong, one root for all of it.

UserInputError
 ├─ AnnotationError  an annotation; the message names key and value
 ├─ NadError         a NetworkAttachmentDefinition; the message lists the problems in it
 └─ BadValueError    one value, named in the message; whoever knows where it stands adds the place and chains it
"""

_TOLD = 16  # problems: whoever names the definition is told them, too


class UserInputError(Exception):
    """Something that a user wrote cannot be used; the message is fit for an Event."""


class AnnotationError(UserInputError):
    """An annotation is malformed or asks for what cannot be."""


class NadError(UserInputError):
    """A network attachment definition cannot be used; the message tells the first problems, `problems` are all."""

    def __init__(self, *problems: str) -> None:
        more = [f"and {len(problems) - _TOLD} more"] if len(problems) > _TOLD else []
        super().__init__("; ".join([*problems[:_TOLD], *more]))
        self.problems = problems


class BadValueError(UserInputError):
    """A value is not what its place takes."""
