"""Errors that abort the demo.

DemoError
 └─ NodeError  the embedded node failed to start or died
"""


class DemoError(Exception):
    """Root of all errors that abort the demo; a mere difference from the expected state is a finding, not an error."""


class NodeError(DemoError):
    """The embedded node failed to start or died; the message includes the end of its log."""
