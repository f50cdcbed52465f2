"""Functions that sphinx-gallery calls by name."""

import os
from pathlib import Path

from sphinx.util import logging

logger = logging.getLogger(__name__)
started = {}


def log_cpu_time(gallery_conf, fname, when):
    """Log the CPU seconds of a script, with its threads and finished child processes."""
    seconds = sum(os.times()[:4]) - started.get(fname, 0)
    if when == "before":
        started[fname] = seconds
    elif seconds > 0.01:  # else the script has not changed since it last ran
        logger.info("CPU seconds of %s: %.1f", Path(fname).name, seconds)
