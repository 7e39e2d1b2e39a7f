"""What users wrote wrong, one root for all of it.

UserInputError
 ├─ AnnotationError  a pod annotation; the message names key and value
 └─ NadError         a NetworkAttachmentDefinition; the message lists every problem in it
"""


class UserInputError(Exception):
    """Something that a user wrote cannot be used; the message is fit for an Event."""


class AnnotationError(UserInputError):
    """A pod annotation is malformed or asks for what cannot be."""


class NadError(UserInputError):
    """A network attachment definition cannot be used."""
