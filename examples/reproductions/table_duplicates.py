"""Equal and nearly equal rows of tables as they are published: what is said of them.

    python table_duplicates.py FOLDER

FOLDER holds CSV files (.csv or .csv.gz). Printed are, for each file, the rows that
equal an earlier one, the verdict, and the pairs of nearly equal rows; at the end, how
many files have each verdict, and how many groups of rows called equal differ in a
number by more than six digits, or in a text by more than case and outer spaces: none
should.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from skvalue.labels import find_duplicates


def scaled_numbers(frame):
    """The columns of numbers, of equal spread, without gaps; or one of zeros."""
    numbers = frame.select_dtypes("number").fillna(0.0).to_numpy(dtype=float)
    if not numbers.shape[1]:
        numbers = np.zeros((len(frame), 1))
    return numbers / (numbers.std(axis=0) + 1e-12)


def comparable_texts(column):
    """Texts that are equal for entries that count as equal."""
    is_number = pd.api.types.is_numeric_dtype(column)
    if is_number and not pd.api.types.is_bool_dtype(column):
        return column.map(lambda entry: f"{entry:.5e}")
    return column.astype(str).str.strip().str.casefold()


def count_unequal_groups(frame, codes):
    """Number of groups of rows called equal whose texts or numbers differ."""
    unequal = set()
    for name in frame.columns:
        texts = comparable_texts(frame[name])
        # A column of distinct entries may number the rows.
        if texts.nunique() < len(frame):
            n_texts = texts.groupby(codes).nunique(dropna=False)
            unequal.update(n_texts.index[n_texts > 1])
    return len(unequal)


def main():
    """Print a line for each file, and the sums."""
    verdicts = Counter()
    n_unequal = 0
    for path in sorted(Path(sys.argv[1]).glob("*.csv*")):
        frame = pd.read_csv(path, nrows=3000)
        duplicates = find_duplicates(frame, scaled_numbers(frame))
        verdicts[duplicates.verdict] += 1
        n_unequal += count_unequal_groups(frame, duplicates.codes)
        n_equal = len(frame) - duplicates.codes.max() - 1
        print(
            f"{path.name}: {n_equal} equal ({duplicates.verdict}), "
            f"{len(duplicates.similar)} similar pairs"
        )
    print(f"{dict(verdicts)}; {n_unequal} groups of rows that are not equal")


if __name__ == "__main__":
    main()
