"""Tables that are read from files and written to files."""

import csv
import os
from collections import Counter

from .._utils.optional import needed

MOST_COLUMNS = 10_000
KINDS = (".csv", ".tsv", ".parquet", ".arrow", ".feather")


def pandas():
    """The module pandas, or an ImportError that names the extra."""
    return needed("pandas", "the command line")


def ending_of(path):
    """What a path ends in, which says the format."""
    return os.path.splitext(path)[1].lower()


def read_table(path, name, *, as_text=False):
    """The frame of a CSV, TSV, Parquet or Arrow file.

    With `as_text`, entries of a CSV file are the strings that the file holds. Lines with too few or
    too many fields are refused; `name` stands for the file in messages.
    """
    kind = ending_of(path)
    if kind not in KINDS:
        raise ValueError(f"{name} must end in one of {', '.join(KINDS)}. Got {path}.")
    if not os.path.isfile(path):
        raise ValueError(f"{name} must be a file that exists. Got {path}.")
    if kind in (".csv", ".tsv"):
        frame = _read_text(path, name, "\t" if kind == ".tsv" else ",", as_text)
    else:
        frame = _read_arrow(path, name, kind)
        _check_header(list(map(str, frame.columns)), name, path)
    if not len(frame):
        raise ValueError(f"{name} must have at least one row. Got {path}, which has none.")
    return frame


def _check_header(names, name, path):
    if len(names) > MOST_COLUMNS:
        raise ValueError(
            f"{name} must have at most {MOST_COLUMNS} columns. Got {path}, which has {len(names)}."
        )
    column, times = Counter(names).most_common(1)[0] if names else ("", 0)
    if times > 1:
        raise ValueError(f"{name} must name every column once. Got {column!r} twice in {path}.")


def _read_text(path, name, separator, as_text):
    pd = pandas()
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            records = csv.reader(file, delimiter=separator, strict=True)
            header = next(records, [])
            _check_header(header, name, path)
            for record in records:
                if record and len(record) != len(header):
                    raise ValueError(
                        f"{name} must have {len(header)} fields in every line, as its header has. "
                        f"Got {len(record)} in line {records.line_num} of {path}."
                    )
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} must be UTF-8 text. Got {path}: {error.reason}.") from None
    except csv.Error as error:
        raise ValueError(f"{name} must be a table of fields. Got {path}: {error}.") from None
    if not header:
        raise ValueError(f"{name} must have a header and rows. Got {path}, which is empty.")
    strings = dict(dtype=str, keep_default_na=False) if as_text else dict(low_memory=False)
    return pd.read_csv(path, sep=separator, encoding="utf-8-sig", index_col=False, **strings)


def _read_arrow(path, name, kind):
    pandas()
    pyarrow = needed("pyarrow", f"a {kind} file")
    from pyarrow import ipc, parquet

    try:
        if kind == ".parquet":
            return parquet.read_table(path).to_pandas()
        with pyarrow.OSFile(os.fspath(path)) as file:
            try:
                return ipc.open_file(file).read_pandas()
            except pyarrow.ArrowInvalid:  # a stream, which has no list of its blocks
                file.seek(0)
                return ipc.open_stream(file).read_pandas()
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{name} must be a whole {kind} file. Got {path}: {error}.") from None


def check_output(path, name, kinds, others=()):
    """Refuse a path that could not be written, or that is one of the others, before any work."""
    if path is None:
        return
    folder = os.path.dirname(os.path.realpath(path))
    if ending_of(path) not in kinds:
        raise ValueError(f"{name} must end in one of {', '.join(kinds)}. Got {path}.")
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise ValueError(f"{name} must be in a folder that can be written. Got {path}.")
    if os.path.exists(path) and not os.path.isfile(path):
        raise ValueError(f"{name} must be a file. Got {path}, a folder, a pipe or a device.")
    if os.path.realpath(path) in [os.path.realpath(other) for other in others if other]:
        raise ValueError(f"{name} must be a file that is not used otherwise. Got {path}.")
    if ending_of(path) in KINDS[2:]:
        needed("pyarrow", f"a {ending_of(path)} file")


def write_frame(frame, path):
    """Write a frame; the end of the final path says in which format."""

    def write(file):
        kind = ending_of(path)
        if kind in (".csv", ".tsv"):
            text = frame.to_csv(index=False, sep="\t" if kind == ".tsv" else ",")
            file.write(text.encode("utf-8"))
        elif kind == ".parquet":
            frame.to_parquet(file, index=False)
        else:
            frame.reset_index(drop=True).to_feather(file)

    return write
