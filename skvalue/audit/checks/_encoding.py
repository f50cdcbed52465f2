"""Columns of a table, scaled and encoded for the checks."""

from dataclasses import replace

import numpy as np

_LEVELS = 20  # columns of a category
_LARGEST = 1e30  # number that models get


def within_limits(column):
    """The column with infinite numbers as missing, and others as float32 holds them."""
    if column.kind == "category":
        return column
    entries = np.where(np.isinf(column.entries), np.nan, column.entries)
    return replace(column, entries=np.clip(entries, -_LARGEST, _LARGEST))


def robust(values):
    """Median and scale of numbers, by their distances from it and their 90 % range."""
    middle = np.nanmedian(values)
    low, high = np.nanquantile(values, [0.05, 0.95])
    deviation = 1.4826 * np.nanmedian(np.abs(values - middle))
    return middle, max(deviation, (high - low) / 3.29, 1e-12 + 1e-9 * abs(middle))


def encode(columns):
    """Columns as an array (n_samples, n_encoded) of numbers without gaps.

    Missing numbers are the median, with a column of marks; a category has a column for
    each of its commonest levels.
    """
    blocks = []
    for column in columns:
        if column.kind == "category":
            blocks += _levels(column)
            continue
        is_missing = column.missing
        middle = 0.0 if is_missing.all() else np.median(column.entries[~is_missing])
        blocks.append(np.where(is_missing, middle, column.entries))
        if is_missing.any():
            blocks.append(is_missing.astype(np.float64))
    return np.column_stack(blocks)


def scaled(columns, squash=False):
    """Columns as an array (n_samples, n_encoded) for distances.

    Numbers are scaled by `robust`, and arcsinh of them with `squash`; levels of
    categories by 1 / sqrt(2), so that two of them are at a distance of one.
    """
    blocks = []
    for column in columns:
        if column.kind == "category":
            blocks += [level / np.sqrt(2) for level in _levels(column)]
            continue
        if column.missing.all():
            continue
        values = column.entries
        if column.is_measure:
            middle, scale = robust(values)
        else:
            middle = np.nanmean(values)
            scale = np.nanstd(values) + 1e-12
        values = np.nan_to_num((values - middle) / scale)
        if squash and column.is_measure:
            values = np.arcsinh(values)
        blocks.append(values)
    return np.column_stack(blocks)


def _levels(column):
    """A column of zeros and ones for each of the commonest levels of a category."""
    levels, counts = np.unique(column.entries, return_counts=True)
    commonest = levels[np.argsort(-counts, kind="stable")][:_LEVELS]
    return [(column.entries == level).astype(np.float64) for level in commonest]
