"""Private gradient values on Covertype: the paper's results without noise, and with it.

Name a folder with covertype.npz (arrays X and y) in the environment variable
SKVALUE_DATA.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from skvalue import GradientSemivalueValuer
from skvalue.datasets import flip_labels
from skvalue.inspection import noisy_label_auc

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "SKVALUE_DATA" not in os.environ, reason="SKVALUE_DATA names no folder"
    ),
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.ConstantColumnsWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.privacy.SeededNoiseWarning"),
]

N = 800
N_VAL = 200


@pytest.fixture(scope="module")
def covertype():
    with np.load(Path(os.environ["SKVALUE_DATA"]) / "covertype.npz") as arrays:
        X = arrays["X"].astype(np.float64)
        _, y = np.unique(arrays["y"], return_inverse=True)
    return X, y


def sample_rows(covertype, n, seed):
    """n rows, and validation points whose labels are among theirs."""
    X, y = covertype
    order = np.random.default_rng(seed).permutation(len(y))
    train = order[:n]
    others = order[n:]
    test = others[np.isin(y[others], y[train])][:N_VAL]
    return X[train], y[train], X[test], y[test]


def mislabelled_rows(covertype, seed):
    X, y, X_val, y_val = sample_rows(covertype, N, seed)
    y, is_wrong = flip_labels(y, 0.3, random_state=seed)
    return X, y, X_val, y_val, is_wrong


def report(capsys, name, scores):
    """Print the mean of AUROCs, which is returned."""
    error = np.std(scores, ddof=1) / np.sqrt(len(scores))
    with capsys.disabled():
        print(
            f"\n{name}: AUROC {np.mean(scores):.3f} ({error:.3f}) of {len(scores)} "
            "draws"
        )
    return np.mean(scores)


def test_wrong_labels_have_small_values_without_noise(covertype, capsys):
    scores = []
    for seed in range(5):
        X, y, X_val, y_val, is_wrong = mislabelled_rows(covertype, seed)
        valuer = GradientSemivalueValuer(n_permutations=200, random_state=seed)
        valuer.fit(X, y, X_val=X_val, y_val=y_val)
        scores.append(noisy_label_auc(valuer.values_, is_wrong))
    name = "Rows of Covertype, no noise (published 0.905)"
    assert report(capsys, name, scores) >= 0.89


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", (4, 1), (16, 1)], ids=str)
def test_correlated_noise_of_8_clips_hides_less_than_independent_noise(
    covertype, capsys, semivalue
):
    X, y, X_val, y_val, is_wrong = mislabelled_rows(covertype, 0)
    mean = X_val.mean(axis=0)
    # Rare one-hot columns are not scaled up.
    scale = np.maximum(X_val.std(axis=0), 0.02) * np.sqrt(X.shape[1])

    def auroc(noise, burn_in):
        valuer = GradientSemivalueValuer(
            "softmax",
            semivalue,
            n_permutations=1000,
            learning_rate=0.05,
            standardize=False,
            noise_multiplier=8 / 1000**0.5,
            noise=noise,
            burn_in=burn_in,
            noise_random_state=0,
            random_state=0,
        )
        valuer.fit((X - mean) / scale, y, X_val=(X_val - mean) / scale, y_val=y_val)
        return noisy_label_auc(valuer.values_, is_wrong)

    correlated = auroc("correlated", 0.9)
    independent = auroc("iid", 0.0)
    with capsys.disabled():
        print(
            f"\nNoise of 8 C, k=1000, {semivalue}: correlated {correlated}, iid "
            f"{independent}"
        )
    assert correlated > independent + 0.02
    if semivalue == "shapley":
        assert correlated >= 0.77


def make_datasets(covertype, size, seed, n=100):
    """Data sets of as many rows, three in ten of them with wrong labels only."""
    owner = np.arange(n * size) // size
    is_bad = np.arange(n) < 0.3 * n
    # A draw in which the good rows and the points have all seven classes.
    for trial in range(1000 * seed, 1000 * seed + 1000):
        X, y, X_val, y_val = sample_rows(covertype, n * size, trial)
        if len(np.unique(y[~is_bad[owner]])) == len(np.unique(y_val)) == 7:
            break
    wrong, _ = flip_labels(y, 1.0, random_state=seed)
    return X, np.where(is_bad[owner], wrong, y), X_val, y_val, owner, is_bad


@pytest.mark.parametrize(
    ("size", "options", "limit"),
    [
        (32, {}, 0.88),
        (128, {}, 0.99),
        (8, {"n_components": 1, "clip": "median"}, 0.68),
        (32, {"n_components": 1, "clip": "median"}, 0.98),
    ],
)
def test_wrong_data_sets_have_small_private_values(
    covertype, capsys, size, options, limit
):
    scores = []
    for seed in range(5):
        X, y, X_val, y_val, owner, is_bad = make_datasets(covertype, size, seed)
        valuer = GradientSemivalueValuer(
            epsilon=1.0,
            delta=5e-5,
            unit="example",
            n_permutations=100,
            random_state=seed,
            **options,
        )
        valuer.fit(X, y, X_val=X_val, y_val=y_val, groups=owner)
        assert valuer.privacy_.guarantee == "(1, 5e-05)-local differential privacy"
        scores.append(noisy_label_auc(valuer.values_, is_bad))
    name = f"Data sets of {size} rows of Covertype, (1, 5e-5), Y*(0.9) {options or ''}"
    assert report(capsys, name, scores) >= limit


def test_private_values_of_rows_stay_below_the_ceiling(covertype, capsys):
    scores = []
    for seed in range(5):
        X, y, X_val, y_val, is_wrong = mislabelled_rows(covertype, seed)
        valuer = GradientSemivalueValuer(
            epsilon=1.0, delta=5e-5, n_permutations=100, n_components=1, clip="median"
        )
        valuer.fit(X, y, X_val=X_val, y_val=y_val)
        scores.append(noisy_label_auc(valuer.values_, is_wrong))
    ceiling = valuer.privacy_.detection_ceiling
    name = f"Rows of Covertype, (1, 5e-5), one direction (ceiling {ceiling:.3f})"
    error = np.std(scores, ddof=1) / 5**0.5
    assert report(capsys, name, scores) <= ceiling + 2 * error
