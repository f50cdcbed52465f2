"""What a path may be instead of a file, for tests: functions that make it there."""

import os

# Windows has no pipes that are paths.
NO_FILES = [getattr(os, name) for name in ("mkdir", "mkfifo") if hasattr(os, name)]
