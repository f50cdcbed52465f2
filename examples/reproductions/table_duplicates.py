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


def numbers_of(frame):
    """The columns of numbers, of equal spread, without gaps; one of zeros if there are
    none."""
    numbers = frame.select_dtypes("number").fillna(0.0).to_numpy(dtype=float)
    numbers = numbers if numbers.shape[1] else np.zeros((len(frame), 1))
    return numbers / (numbers.std(axis=0) + 1e-12)


def different(frame, codes):
    """Number of groups of equal rows whose texts or numbers differ."""
    found = set()
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(
            column
        ):
            texts = column.map(lambda entry: f"{entry:.5e}")
        else:
            texts = column.astype(str).str.strip().str.casefold()
        n_texts = texts.groupby(codes).nunique(dropna=False)
        if texts.nunique() < len(frame):  # else it may number the rows
            found.update(n_texts.index[n_texts > 1])
    return len(found)


def main():
    """Print a line for each file, and the sums."""
    verdicts, n_different = Counter(), 0
    for path in sorted(Path(sys.argv[1]).glob("*.csv*")):
        frame = pd.read_csv(path, nrows=3000)
        found = find_duplicates(frame, numbers_of(frame))
        verdicts[found.verdict] += 1
        n_different += different(frame, found.codes)
        n_equal = len(frame) - found.codes.max() - 1
        print(
            f"{path.name}: {n_equal} equal ({found.verdict}), {len(found.similar)} similar pairs"
        )
    print(f"{dict(verdicts)}; {n_different} groups of rows that are not equal")


if __name__ == "__main__":
    main()
