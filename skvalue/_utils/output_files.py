"""Files that a command writes: which are refused, and tables in them."""

import os
from functools import partial

from ..exceptions import ParameterError
from .optional import import_optional

_ARROW_KINDS = (".parquet", ".arrow", ".feather")
KINDS = (".csv", ".tsv", *_ARROW_KINDS)


def pandas():
    """The module pandas, or an ImportError that names the extra."""
    return import_optional("pandas", "the command line")


def ending_of(path):
    """What a path ends in, which says the format."""
    return os.path.splitext(path)[1].lower()


def check_outputs(options, kinds, inputs):
    """Refuse, before any work, files that could not be written, or are used otherwise.

    ``kinds``: option -> what the name of its file may end in; ``inputs``: files that
    are read.
    """
    used = {os.path.realpath(path) for path in inputs if path is not None}
    for option, endings in kinds.items():
        path = getattr(options, option)
        if path is None:
            continue
        name = f"--{option}"
        ending = ending_of(path)
        target = os.path.realpath(path)
        folder = os.path.dirname(target)
        if ending not in endings:
            raise ParameterError(
                name, f"must end in one of {', '.join(endings)}. Got {path}."
            )
        if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
            raise ParameterError(
                name, f"must be in a folder that can be written. Got {path}."
            )
        if os.path.exists(path) and not os.path.isfile(path):
            raise ParameterError(
                name, f"must be a file. Got {path}, a folder, a pipe or a device."
            )
        if target in used:
            raise ParameterError(
                name, f"must be a file that is not used otherwise. Got {path}."
            )
        if ending in _ARROW_KINDS:
            import_optional("pyarrow", f"a {ending} file")
        used.add(target)


def write_frame(frame, path):
    """The function that writes a frame to a file, as the end of the path says."""
    ending = ending_of(path)
    if ending == ".csv":
        return partial(frame.to_csv, index=False)
    if ending == ".tsv":
        return partial(frame.to_csv, index=False, sep="\t")
    if ending == ".parquet":
        return partial(frame.to_parquet, index=False)
    return frame.reset_index(drop=True).to_feather
