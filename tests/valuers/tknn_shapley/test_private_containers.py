"""Private counts of rows that are sparse, in a file or a Dask array."""

import numpy as np
import pytest
from neighbors.test_rows import convert
from sklearn import config_context

from skvalue import TKNNShapleyValuer
from skvalue.neighbors import Rows
from skvalue.privacy import SeededNoiseWarning

pytestmark = [
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.RadiusWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning"),
]

# Rows that are counted in no ball.
NULL_ROWS = {
    "none": [],
    "nan": [np.nan],
    "inf": [np.inf, -np.inf],
    "large": [1e200],
}
OPTIONS = {
    "all balls": {"max_contributions": None},
    "capped": {"max_contributions": 3},
    "sampled": {
        "max_contributions": None,
        "denoise": False,
        "sampling_rate": 0.3,
    },
}


def rows_and_points(rng, numbers):
    X = rng.integers(-2, 3, (130, 4)) * (rng.random((130, 4)) < 0.6) / 2.0
    for i, number in enumerate(numbers):
        X[7 + i, 1] = number
    y = rng.integers(0, 3, len(X))
    X_val = rng.integers(-2, 3, (30, 4)) / 2.0
    return X, y, {"X_val": X_val, "y_val": rng.integers(0, 3, 30)}


def fit(X, y, points, **options):
    valuer = TKNNShapleyValuer(
        1.0,
        metric="euclidean",
        epsilon=1.0,
        delta=1e-5,
        noise_random_state=0,
        **options,
    )
    with pytest.warns(SeededNoiseWarning):
        return valuer.fit(X, y, **points)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", NULL_ROWS)
@pytest.mark.parametrize("kind", ["csr", "memmap", "dask"])
def test_counts_are_those_of_rows_in_memory(kind, name, options, rng, tmp_path):
    """To the bit, with equal noise and with rows that are counted nowhere."""
    X, y, points = rows_and_points(rng, NULL_ROWS[name])
    expected = fit(X, y, points, **OPTIONS[options])
    valuer = fit(convert(X, kind, tmp_path), y, points, **OPTIONS[options])

    np.testing.assert_array_equal(valuer.counts_, expected.counts_)
    new = points["X_val"][:4] + 0.25
    np.testing.assert_array_equal(
        valuer.score_samples(new), expected.score_samples(new)
    )


@pytest.mark.parametrize("options", OPTIONS)
def test_a_file_is_never_read_as_a_whole(options, rng, tmp_path, monkeypatch):
    X, y, points = rows_and_points(rng, [np.nan])
    X = np.tile(X, (40, 8))
    y = np.tile(y, 40)
    points["X_val"] = np.tile(points["X_val"], (1, 8))
    sizes = []
    read = Rows.read

    def watched(self):
        rows = read(self)
        sizes.append(len(rows))
        return rows

    monkeypatch.setattr(Rows, "read", watched)
    with config_context(working_memory=1):
        fit(convert(X, "memmap", tmp_path), y, points, **OPTIONS[options])
    assert max(sizes) < len(X) / 2
