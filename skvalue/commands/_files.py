"""Files that are written as a whole or not at all."""

import os

from .._utils.optional import needed

KINDS = (".csv", ".tsv", ".parquet", ".arrow", ".feather")


def pandas():
    """The module pandas, or an ImportError that names the extra."""
    return needed("pandas", "the command line")


def ending_of(path):
    """What a path ends in, which says the format."""
    return os.path.splitext(path)[1].lower()


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
