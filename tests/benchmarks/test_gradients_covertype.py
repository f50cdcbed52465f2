"""Private gradient values on Covertype: what the paper finds without noise, and what
holds with it.

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

N, N_VAL = 800, 200


@pytest.fixture(scope="module")
def covertype():
    with np.load(Path(os.environ["SKVALUE_DATA"]) / "covertype.npz") as arrays:
        return arrays["X"].astype(np.float64), np.unique(
            arrays["y"], return_inverse=True
        )[1]


def rows(covertype, n, seed):
    """n rows, and validation points whose labels are among theirs."""
    X, y = covertype
    order = np.random.default_rng(seed).permutation(len(y))
    some, others = order[:n], order[n:]
    others = others[np.isin(y[others], y[some])][:N_VAL]
    return X[some], y[some], X[others], y[others]


def mislabelled(covertype, seed):
    X, y, X_val, y_val = rows(covertype, N, seed)
    y, wrong = flip_labels(y, 0.3, random_state=seed)
    return X, y, X_val, y_val, wrong


def report(capsys, what, scores):
    with capsys.disabled():
        error = np.std(scores, ddof=1) / np.sqrt(len(scores))
        print(
            f"\n{what}: AUROC {np.mean(scores):.3f} ({error:.3f}) of {len(scores)} draws"
        )
    return np.mean(scores)


def test_wrong_labels_without_noise(covertype, capsys):
    scores = []
    for seed in range(5):
        X, y, X_val, y_val, wrong = mislabelled(covertype, seed)
        valuer = GradientSemivalueValuer(n_permutations=200, random_state=seed)
        scores.append(
            noisy_label_auc(valuer.fit(X, y, X_val=X_val, y_val=y_val).values_, wrong)
        )
    assert (
        report(capsys, "Rows of Covertype, no noise (published 0.905)", scores) >= 0.89
    )


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", (4, 1), (16, 1)], ids=str)
def test_noise_of_8_clips(covertype, capsys, semivalue):
    X, y, X_val, y_val, wrong = mislabelled(covertype, 0)
    mean, scale = X_val.mean(axis=0), X_val.std(axis=0)
    scale = np.maximum(scale, 0.02) * np.sqrt(X.shape[1])  # rare one-hot columns
    found = {}
    for noise, burn_in in (("correlated", 0.9), ("iid", 0.0)):
        valuer = GradientSemivalueValuer(
            "softmax", semivalue, n_permutations=1000, learning_rate=0.05, standardize=False,
            noise_multiplier=8 / 1000**0.5, noise=noise, burn_in=burn_in, noise_random_state=0,
            random_state=0,
        ).fit((X - mean) / scale, y, X_val=(X_val - mean) / scale, y_val=y_val)  # fmt: skip
        found[noise] = noisy_label_auc(valuer.values_, wrong)
    with capsys.disabled():
        print(f"\nNoise of 8 C, k=1000, {semivalue}: {found}")
    assert found["correlated"] > found["iid"] + 0.02
    if semivalue == "shapley":
        assert found["correlated"] >= 0.77


def data_sets(covertype, size, seed, n=100):
    """Data sets of as many rows, three in ten of them with wrong labels only."""
    owner, bad = np.arange(n * size) // size, np.arange(n) < 0.3 * n
    for trial in range(1000 * seed, 1000 * seed + 1000):
        X, y, X_val, y_val = rows(covertype, n * size, trial)
        if len(np.unique(y[~bad[owner]])) == len(np.unique(y_val)) == 7:
            break
    wrong, _ = flip_labels(y, 1.0, random_state=seed)
    return X, np.where(bad[owner], wrong, y), X_val, y_val, owner, bad


@pytest.mark.parametrize(
    ("size", "public", "limit"),
    [
        (32, {}, 0.88),
        (128, {}, 0.99),
        (8, {"n_components": 1, "clip": "median"}, 0.68),
        (32, {"n_components": 1, "clip": "median"}, 0.98),
    ],
)
def test_data_sets(covertype, capsys, size, public, limit):
    scores = []
    for seed in range(5):
        X, y, X_val, y_val, owner, bad = data_sets(covertype, size, seed)
        valuer = GradientSemivalueValuer(
            epsilon=1.0,
            delta=5e-5,
            unit="example",
            n_permutations=100,
            random_state=seed,
            **public,
        )
        valuer.fit(X, y, X_val=X_val, y_val=y_val, groups=owner)
        assert valuer.privacy_.guarantee == "(1, 5e-05)-local differential privacy"
        scores.append(noisy_label_auc(valuer.values_, bad))
    what = f"Data sets of {size} rows of Covertype, (1, 5e-5), Y*(0.9) {public or ''}"
    assert report(capsys, what, scores) >= limit


def test_rows_under_the_correct_noise_stay_below_the_ceiling(covertype, capsys):
    scores = []
    for seed in range(5):
        X, y, X_val, y_val, wrong = mislabelled(covertype, seed)
        valuer = GradientSemivalueValuer(
            epsilon=1.0, delta=5e-5, n_permutations=100, n_components=1, clip="median"
        ).fit(X, y, X_val=X_val, y_val=y_val)
        scores.append(noisy_label_auc(valuer.values_, wrong))
    ceiling = valuer.privacy_.detection_ceiling
    what = f"Rows of Covertype, (1, 5e-5), one direction (ceiling {ceiling:.3f})"
    assert report(capsys, what, scores) <= ceiling + 2 * np.std(scores, ddof=1) / 5**0.5
