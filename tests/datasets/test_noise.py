import numpy as np
import pandas as pd
import polars as pl
import pytest

from skvalue.datasets import flip_labels, perturb_features

LABELS = {
    "strings": np.array(["cat", "dog", "owl", "a much longer name"] * 25),
    "gaps": np.array([-7, 3, 100, 12] * 25),
    "floats": np.array([0.0, 2.0] * 50),
    "booleans": np.array([True, False] * 50),
    "objects": np.array(["cat", "dog"] * 50, dtype=object),
    "list": ["cat", "dog"] * 50,
    "pandas": pd.Series(["cat", "dog"] * 50, index=range(500, 600)),
    "categories": pd.Series(["cat", "dog"] * 50, dtype="category"),
    "polars": pl.Series(["cat", "dog"] * 50),
}


@pytest.mark.parametrize("kind", LABELS)
def test_flips_are_where_the_mask_says_for_any_labels(kind):
    y = LABELS[kind]
    before = np.array(y)
    y_noisy, flipped = flip_labels(y, 0.3, random_state=0)
    assert isinstance(y_noisy, np.ndarray)
    assert not isinstance(y, np.ndarray) or y_noisy.dtype == y.dtype
    assert flipped.dtype == bool
    assert flipped.sum() == 30
    np.testing.assert_array_equal(y_noisy != before, flipped)
    assert set(y_noisy.tolist()) == set(before.tolist())
    np.testing.assert_array_equal(np.array(y), before)


@pytest.mark.parametrize(
    ("fraction", "count"),
    [(0, 0), (0.0, 0), (1, 1), (1.0, 100), (7, 7), (100, 100), (0.29, 29), (0.126, 13)],
)
def test_number_of_noisy_rows_is_exact(fraction, count):
    y_noisy, flipped = flip_labels(LABELS["gaps"], fraction, random_state=0)
    assert flipped.sum() == (y_noisy != LABELS["gaps"]).sum() == count
    _, perturbed = perturb_features(np.eye(100), fraction, random_state=0)
    assert perturbed.sum() == count


def test_new_label_is_uniform_among_the_others():
    y = np.repeat([0, 1, 2, 3], 3000)
    y_noisy, _ = flip_labels(y, 1.0, random_state=0)
    pairs = np.histogram2d(y, y_noisy, bins=4)[0]
    assert (np.diag(pairs) == 0).all()
    others = pairs[~np.eye(4, dtype=bool)]
    assert np.abs(others - 1000).max() < 5 * np.sqrt(3000 * 1 / 3 * 2 / 3)


@pytest.mark.parametrize(
    ("corrupt", "clean"),
    [(flip_labels, np.array([0] * 8 + [1] * 2)), (perturb_features, np.eye(10))],
)
def test_rows_are_drawn_uniformly(corrupt, clean):
    n_draws = 300
    counts = np.zeros(10)
    for seed in range(n_draws):
        _, mask = corrupt(clean, 2, random_state=seed)
        counts += mask
    assert np.abs(counts - 0.2 * n_draws).max() < 5 * np.sqrt(n_draws * 0.2 * 0.8)


@pytest.mark.parametrize(
    ("corrupt", "clean"),
    [(flip_labels, LABELS["strings"]), (perturb_features, np.eye(100))],
)
class TestRandomState:
    def test_the_same_seed_gives_the_same_noise(self, corrupt, clean):
        noisy, mask = corrupt(clean, 0.2, random_state=3)
        noisy_again, mask_again = corrupt(clean, 0.2, random_state=3)
        np.testing.assert_array_equal(noisy, noisy_again)
        np.testing.assert_array_equal(mask, mask_again)

    def test_another_seed_gives_other_rows(self, corrupt, clean):
        _, mask = corrupt(clean, 0.2, random_state=3)
        _, other_mask = corrupt(clean, 0.2, random_state=4)
        assert (mask != other_mask).any()

    def test_a_generator_continues_from_call_to_call(self, corrupt, clean):
        rng = np.random.RandomState(3)
        _, first_mask = corrupt(clean, 0.2, random_state=rng)
        _, second_mask = corrupt(clean, 0.2, random_state=rng)
        _, mask_of_seed = corrupt(clean, 0.2, random_state=3)
        np.testing.assert_array_equal(first_mask, mask_of_seed)
        assert (first_mask != second_mask).any()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, 1, 1], "y must have at least 2 classes. Got one class: 1"),
        ([], "y must have at least 2 classes. Got no label."),
        ([0.5, 1.25, 3.0], "y must hold classes. Got continuous values, such as 0.5"),
        ([0.0, np.nan, 1.0], "y contains NaN"),
        (
            ["a", None, "b"],
            "one sortable kind and none missing. .* the types NoneType, str",
        ),
        (
            np.array(["a", 1], dtype=object),
            "one sortable kind .* Got labels of the types int, str",
        ),
        (np.zeros((3, 2)), r"y should be a 1d array, got an array of shape \(3, 2\)"),
    ],
)
def test_labels_that_are_no_classes_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        flip_labels(y)


@pytest.mark.parametrize("fraction", [1.5, -1, -0.1, "some", 101])
@pytest.mark.parametrize(
    ("corrupt", "clean"),
    [(flip_labels, LABELS["gaps"]), (perturb_features, np.eye(100))],
)
def test_fraction_out_of_range_is_refused(corrupt, clean, fraction):
    with pytest.raises(ValueError, match=f"fraction.* Got {fraction!r}"):
        corrupt(clean, fraction)


# Size of a column by the name of the rule.
COLUMN_SIZE = {"std": np.std, "norm": np.linalg.norm}


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(4000, 3)) * [1.0, 50.0, 0.01] + [5.0, 0.0, 0.02]


@pytest.mark.parametrize("scale", [0.5, 2])
@pytest.mark.parametrize("relative_to", COLUMN_SIZE)
def test_noise_has_the_size_of_the_rule(X, relative_to, scale):
    X_noisy, _ = perturb_features(
        X, 1.0, scale, random_state=0, relative_to=relative_to
    )
    noise = (X_noisy - X) / (scale * COLUMN_SIZE[relative_to](X, axis=0))
    # 4,000 draws of a standard normal: five standard errors of means, standard
    # deviations and correlations.
    assert np.abs(noise.mean(axis=0)).max() < 5 / np.sqrt(4000)
    assert np.abs(noise.std(axis=0) - 1).max() < 5 / np.sqrt(8000)
    assert np.abs(np.corrcoef(noise.T) - np.eye(3)).max() < 5 / np.sqrt(4000)


def test_noise_is_where_the_mask_says(X):
    before = X.copy()
    X_noisy, perturbed = perturb_features(X, 0.25, random_state=0)
    assert perturbed.sum() == 1000
    np.testing.assert_array_equal((X_noisy != X).all(axis=1), perturbed)
    np.testing.assert_array_equal((X_noisy != X).any(axis=1), perturbed)
    np.testing.assert_array_equal(X, before)


def test_size_is_the_standard_deviation_by_default(X):
    constant = np.c_[X, np.full(len(X), 7.0)]
    default, perturbed = perturb_features(constant, random_state=0)
    by_name, _ = perturb_features(constant, 0.1, 1.0, random_state=0, relative_to="std")
    np.testing.assert_array_equal(default, by_name)
    assert perturbed.sum() == 400
    assert (default[:, 3] == 7).all()


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("float32", "float32"), ("float64", "float64"), ("int64", "float64")],
)
def test_floats_keep_their_precision(X, dtype, expected):
    X_noisy, _ = perturb_features(X.astype(dtype), random_state=0)
    assert X_noisy.dtype == expected


@pytest.mark.parametrize("make_frame", [pd.DataFrame, pl.DataFrame])
def test_noise_of_a_frame_is_that_of_its_array(X, make_frame):
    X_noisy, _ = perturb_features(make_frame(X), random_state=0)
    assert isinstance(X_noisy, np.ndarray)
    np.testing.assert_array_equal(X_noisy, perturb_features(X, random_state=0)[0])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"X": [[0.0, np.nan]]}, "X contains NaN"),
        ({"X": [[0.0, np.inf]]}, "X contains infinity"),
        ({"X": [0.0, 1.0]}, "Expected 2D array, got 1D array"),
        ({"scale": -1.0}, "'scale' parameter .* Got"),
        ({"scale": np.nan}, "'scale' parameter .* Got"),
        ({"relative_to": "range"}, "'relative_to' parameter .* Got"),
        ({"random_state": "dice"}, "'random_state' parameter .* Got"),
    ],
)
def test_wrong_parameters_of_perturb_features_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        perturb_features(**{"X": np.eye(3), **parameters})
