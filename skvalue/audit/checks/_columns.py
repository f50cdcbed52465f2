"""Columns of a table, scaled and encoded for the checks."""

import numpy as np

_LEVELS = 20  # columns of a category


def robust(values):
    """Median and scale of numbers, by their distances from it and the range of 90 % of
    them."""
    middle = np.nanmedian(values)
    low, high = np.nanquantile(values, [0.05, 0.95])
    spread = 1.4826 * np.nanmedian(np.abs(values - middle))
    return middle, max(spread, (high - low) / 3.29, 1e-12 + 1e-9 * abs(middle))


def encode(columns):
    """Numbers without gaps, marks of missing ones, and columns of the commonest
    levels."""
    blocks = []
    for column in columns:
        if column.kind == "category":
            blocks += _levels(column)
            continue
        lost = column.missing
        middle = np.median(column.entries[~lost]) if not lost.all() else 0.0
        blocks.append(np.where(lost, middle, column.entries))
        if lost.any():
            blocks.append(lost.astype(np.float64))
    return np.column_stack(blocks)


def scaled(columns, squash=False):
    """Numbers by `robust`, arcsinh of them with `squash`; levels of categories by 1 /
    sqrt(2)."""
    blocks = []
    for column in columns:
        if column.kind == "category":
            blocks += [block / np.sqrt(2) for block in _levels(column)]
        elif not column.missing.all():
            values = column.entries
            middle, scale = np.nanmean(values), np.nanstd(values) + 1e-12
            if column.is_measure:
                middle, scale = robust(values)
            values = np.nan_to_num((values - middle) / scale)
            blocks.append(
                np.arcsinh(values) if squash and column.is_measure else values
            )
    return np.column_stack(blocks)


def _levels(column):
    levels, counts = np.unique(column.entries, return_counts=True)
    levels = levels[np.argsort(-counts, kind="stable")][:_LEVELS]
    return [(column.entries == level).astype(np.float64) for level in levels]
