"""``python -m skvalue`` is the command ``skvalue``."""

import sys

from .audit.commands import main

if __name__ == "__main__":
    sys.exit(main())
