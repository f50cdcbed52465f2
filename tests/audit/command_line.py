"""The command line, as the tests call it."""

from skvalue.audit.commands import main


def command(line):
    """Run a command, given as a line without quotes, or as a list of words.

    Returns the exit code.
    """
    return main(line.split() if isinstance(line, str) else line)
