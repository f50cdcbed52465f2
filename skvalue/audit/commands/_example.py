"""``skvalue example``: a table to try the other commands on."""

from pathlib import Path

from sklearn.datasets import load_wine

from ..._utils.csv_text import csv_text
from ..._utils.writing import write_files
from ...datasets import flip_labels
from ._options import new_command

_GRAPES = ("Barolo", "Grignolino", "Barbera")
_N_WRONG = 12
_MISSPELLED = {3: "barolo", 40: "BAROLO", 77: "grignolino", 150: "BARBERA"}


def add_command(commands):
    """Add ``skvalue example``."""
    parser = new_command(
        commands,
        "example",
        "write a table with wrong labels, to try the other commands on",
        run=_run,
    )
    parser.add_argument(
        "file",
        nargs="?",
        default="train.csv",
        help="file to write (.csv), which must not exist; default: %(default)s",
    )


def example_table():
    """The lines of the table, its head first: measures of wines, and their grapes."""
    wine = load_wine()
    codes, flipped = flip_labels(wine.target, _N_WRONG, random_state=0)
    labels = [_GRAPES[code] for code in codes]
    for row, spelling in _MISSPELLED.items():
        labels[row] = spelling

    lines = [[*wine.feature_names, "label"]]
    for numbers, label in zip(wine.data.tolist(), labels):
        lines.append([*numbers, label])
    return lines, flipped


def _run(options):
    path = Path(options.file)
    if path.suffix != ".csv":
        raise ValueError(f"file must end in .csv. Got {options.file!r}.")
    if path.exists():
        raise FileExistsError(f"file must not exist. Got {options.file!r}.")

    lines, flipped = example_table()
    write_files({options.file: csv_text(lines)})
    print(
        f"{options.file}: {len(lines) - 1} wines with their grape as the label; "
        f"{flipped.sum()} labels are wrong and {len(_MISSPELLED)} misspelled."
    )
    stem = path.with_suffix("")
    print(
        f"Next: skvalue audit {options.file} --target label -o {stem}.html "
        f"--corrections {stem}.corrections.csv"
    )
