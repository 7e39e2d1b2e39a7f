"""Has SIGTERM end the demo as Ctrl-C does: with what it made removed."""

import signal


def clean_up_on_sigterm() -> None:
    """Has SIGTERM raise KeyboardInterrupt."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
