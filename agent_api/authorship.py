"""Who wrote a port file or an answer, and when: the keys `author` and `time`, in upstream's form."""

AUTHOR = "contrail-agent"


def upstream_time(seconds: float) -> str:
    """Returns a moment, in seconds since the epoch, as upstream writes it: hours, `426404:56:19.863169`."""
    whole, microseconds = divmod(round(seconds * 1_000_000), 1_000_000)
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours:02d}:{minute:02d}:{second:02d}.{microseconds:06d}"
