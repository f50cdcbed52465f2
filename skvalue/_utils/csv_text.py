"""Text of CSV files that every reader splits into the entries that were written."""

import csv
import io


def csv_text(rows, separator=","):
    r"""The text of rows of entries; each line ends with a line feed.

    >>> csv_text([["a", "b"], ["1,5", "x\ry"]])
    'a,b\n"1,5","x\ry"\n'
    """
    lines = _Lines()
    writer = csv.writer(lines, delimiter=separator, lineterminator="\r\n")
    writer.writerows(rows)
    return lines.getvalue()


def csv_text_of_frame(frame, separator=","):
    """The text of a pandas frame, with its numbers and dates as pandas writes them."""
    lines = _Lines()
    frame.to_csv(lines, index=False, sep=separator, lineterminator="\r\n")
    return lines.getvalue()


class _Lines(io.StringIO):
    """Lines of `csv`, which writes one at a time, with a line feed at their ends.

    Python before 3.13 quotes a carriage return only if it ends the lines. Without
    quotes, a reader takes it for the end of a line: so it ends them here, and goes.
    """

    def write(self, line):
        return super().write(line.removesuffix("\r\n") + "\n")
