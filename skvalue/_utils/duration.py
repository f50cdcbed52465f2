"""Durations in words."""

LONG = 10  # seconds, from which on the time of a fit is announced


def duration(seconds):
    """A duration in seconds, minutes or hours.

    >>> duration(61), duration(100), duration(9000)
    ('61 seconds', '2 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    if seconds < 5400:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"
