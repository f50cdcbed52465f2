"""Some rows of a file, in a file of the same kind: each as it was."""

from functools import partial

from ..._utils.output_files import compressed, ending_of, write_excel
from ..reading import ARROW, EXCEL, excel_rows, rows_of_table, whole_table
from ._fix_arrow import write_arrow


def kept_rows(path, reading, numbers, options):
    """The content of the file, or the function that writes it.

    numbers : ndarray of int, of the rows, ascending; the first below the header is 0
    """
    ending = ending_of(path)
    if ending in ARROW:
        table = whole_table(path, options.max_rows)
        return write_arrow(rows_of_table(table, numbers), options.output)
    if ending == EXCEL:
        rows = excel_rows(path, options.max_rows)
        n_headers = options.skip_lines
        if options.header is not False:
            n_headers += 1
        kept = [*rows[:n_headers], *(rows[n_headers + number] for number in numbers)]
        return partial(write_excel, kept)
    content = reading.to_bytes(numbers)
    if ending.endswith(".gz"):
        return compressed(content)
    return content
