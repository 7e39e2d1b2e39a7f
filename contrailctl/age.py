"""Formats ages like kubectl."""

import itertools

_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
_EXACT_BELOW = 10  # below this number of its largest unit, an age also shows the next smaller unit


def format_age(seconds: float) -> str:
    """Returns `45s`, `3m20s`, `12m`, `5h10m`, `4d`..."""
    rest = max(0, int(seconds))
    for (unit, size), (finer, finer_size) in itertools.pairwise(_UNITS):
        whole, left = divmod(rest, size)
        if whole:
            # The smaller unit is omitted if it is zero: 2h rather than 2h0m.
            detail = f"{left // finer_size}{finer}" if whole < _EXACT_BELOW and left >= finer_size else ""
            return f"{whole}{unit}{detail}"
    return f"{rest}s"
