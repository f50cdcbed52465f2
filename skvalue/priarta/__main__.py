"""``python -m skvalue.priarta`` is the command ``skvalue seller``."""

import argparse
import sys

from .._utils.messages import message_of_file
from .seller import add_seller_steps


def main(arguments=None):
    """Run the command line; returns 0 on success and 2 on an error."""
    parser = argparse.ArgumentParser(
        "python -m skvalue.priarta", description="A seller's side of PriArTa."
    )
    add_seller_steps(parser)
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except (ValueError, TypeError, ImportError, OSError) as error:
        print(f"error: {message_of_file(error) or error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
