"""The parser of the command line, its exit codes and its messages."""

import argparse
import io
import os
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout

import skvalue

from ..._utils.messages import message_of_file
from ...collaborative import add_party_command
from ...priarta import add_buyer_command, add_seller_command
from ...privacy import add_ledger_command
from . import (
    _audit,
    _check,
    _clean,
    _example,
    _fix,
    _methods,
    _review,
    _value,
)
from ._messages import in_words

_DONE = 0
_BAD_INPUT = 2
_INTERRUPTED = 130
_ENDING = """\
to begin with:
  skvalue example train.csv
  skvalue audit train.csv --target label -o train.html --corrections corrections.csv
  skvalue fix train.csv corrections.csv -o train.fixed.csv

exit codes: 0 done; 1 a gate of --fail-on or --fail-on-findings failed; 2 the
input was refused, for the reason on the standard error; 130 interrupted by
Ctrl-C. Nothing is written with 2 and 130, unless the standard error says where.
"""
_COMMANDS = (_example, _audit, _check, _review, _fix, _clean, _value, _methods)
_LONGEST = 1000  # letters of a message
_EXPECTED = (ValueError, TypeError, ImportError, OSError, MemoryError)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def error(self, message):
        self.exit(_BAD_INPUT, f"error: {message} (see {self.prog} --help)\n")


def main(arguments=None):
    """Run the command line.

    Parameters
    ----------
    arguments : list of str, default=None
        The words after ``skvalue``; None means those of this process.

    Returns
    -------
    code : int
        0 if the command did what it was asked for, 1 if a gate failed, 2 if the input
        was refused, which one sentence on the standard error says, 130 after Ctrl-C.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if sys.stderr is None:  # closed, as by 2>&-; the parser writes to it
        sys.stderr = io.StringIO()
    options = _parser().parse_args(arguments)
    output = _Output(sys.stdout)
    with (
        warnings.catch_warnings(),
        redirect_stdout(output),
        redirect_stderr(_Output(sys.stderr)),
    ):
        warnings.simplefilter("default")
        warnings.showwarning = _show_warning
        code = _run(options)
        if output.error is None or code in (_BAD_INPUT, _INTERRUPTED):
            return code
        reason = output.error.strerror or str(output.error)
        print(
            f"error: what was printed is lost ({reason}); the files are written.",
            file=sys.stderr,
        )
        return code or _BAD_INPUT


def _run(options):
    """Run the command of the options, and return its exit code."""
    try:
        return options.run(options) or _DONE
    except _EXPECTED as error:
        print(f"error: {_one_line(error)}", file=sys.stderr)
        return _BAD_INPUT
    except KeyboardInterrupt:
        print("interrupted: nothing was written.", file=sys.stderr)
        return _INTERRUPTED
    except Exception as error:  # a fault of ours: 1 is the code of a gate alone
        kind = type(error).__name__
        print(f"error: an unexpected {kind}: {_one_line(error)}", file=sys.stderr)
        return _BAD_INPUT


class _Output:
    """Standard output, or the standard error, that stops no command.

    It goes nowhere if it is closed, once its reader is gone or its disk is full, so
    that files are still written when, for example, the reader is ``head``. Letters that
    its encoding lacks are replaced.

    `error`: why it could not be written, or None; a reader that is gone is no error.
    """

    def __init__(self, stream):
        if stream is None:  # closed, as by >&-
            stream = io.StringIO()
        self._stream = stream
        self.error = None

    def write(self, text):
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        text = text.encode(encoding, "backslashreplace").decode(encoding)
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError as error:
            if not isinstance(error, BrokenPipeError):
                self.error = error
            self._discard()

    def _discard(self):
        """Let go nowhere what is written from now on."""
        if self._stream in (sys.__stdout__, sys.__stderr__):
            # What is in its buffer is written when the process ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
        self._stream = io.StringIO()

    def __getattr__(self, name):
        return getattr(self._stream, name)


def _parser():
    about = "Find, mend, value and drop rows of a table."
    parser = _Parser(
        "skvalue",
        description=about,
        epilog=_ENDING,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action="version", version=f"skvalue {skvalue.__version__}"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in _COMMANDS:
        module.add_command(commands)
    add_buyer_command(commands)
    add_ledger_command(commands)
    add_party_command(commands)
    add_seller_command(commands)
    return parser


def _one_line(error):
    text = message_of_file(error) or in_words(error) or type(error).__name__
    if len(text) >= _LONGEST:
        return text[:_LONGEST] + " ..."
    return text


def _show_warning(message, category, filename, lineno, file=None, line=None):
    print(f"warning: {_one_line(message)}", file=sys.stderr)
