"""What keeps the demo from going on.

DemoError
 └─ NodeError  the embedded node did not start, or died
"""


class DemoError(Exception):
    """Root of what keeps the demo from going on; what merely differs from the expected is a finding, no error."""


class NodeError(DemoError):
    """The embedded node did not start, or died; the message holds the end of its log."""
