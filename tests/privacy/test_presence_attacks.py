"""Attacks on the presence of one odd row, against the ceilings that reports state."""

import math

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from skvalue import (
    FederatedSemivalueValuer,
    GradientSemivalueValuer,
    InRunShapleyValuer,
)
from skvalue.priarta import BuyerModel, PrincipalComponents, SellerRelease

pytestmark = pytest.mark.slow


def auroc(without, with_row):
    """Area under the ROC curve, in the better direction, and its standard error.

    The error is that of scores that tell nothing.
    """
    labels = np.repeat([0, 1], [len(without), len(with_row)])
    area = roc_auc_score(labels, np.concatenate([without, with_row]))
    n = len(without)
    return max(area, 1 - area), math.sqrt((2 * n + 1) / (12 * n**2))


def check_ceiling(without, with_row, ceiling):
    area, error = auroc(without, with_row)
    assert area <= ceiling + 4 * error, (area, error)


# A row of a party ---------------------------------------------------------------------

N = 90
PARTIES = np.repeat([0, 1, 2], N // 3)


def draw(n, rng):
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] > 0).astype(int)


def scores_of_presence(valuer, number, n_fits):
    """Values of the party of a row, with a row of some number and with the usual one.

    Also the ceiling that the report states.
    """
    rng = np.random.default_rng(0)
    X, y = draw(N, rng)
    X_val, y_val = draw(30, rng)
    unusual = X.copy()
    unusual[0] = number
    scores = np.empty((2, n_fits))
    for i in range(n_fits):
        for j, rows in enumerate((X, unusual)):
            fitted = clone(valuer).fit(
                rows, y, X_val=X_val, y_val=y_val, groups=PARTIES
            )
            scores[j, i] = fitted.values_[0]
    return *scores, fitted.privacy_.detection_ceiling


def private(cls, model, **parameters):
    return cls(
        model,
        unit="example",
        epsilon=1.0,
        learning_rate=1.0,
        burn_in=0.0,
        n_permutations=4,
        random_state=0,
        **parameters,
    )


@pytest.mark.parametrize(
    ("cls", "parameters"),
    [(FederatedSemivalueValuer, {"n_rounds": 2}), (GradientSemivalueValuer, {})],
)
@pytest.mark.parametrize("engine", ["linear", "torch"])
@pytest.mark.parametrize("number", [1e200, np.nan])
def test_the_presence_of_an_example_stays_below_the_ceiling(
    cls, parameters, engine, number
):
    model = "auto" if engine == "linear" else torch.nn.Linear(3, 2)
    n_fits = 300 if engine == "linear" else 60
    valuer = private(cls, model, **parameters)
    without, with_row, ceiling = scores_of_presence(valuer, number, n_fits)
    assert ceiling < 0.58
    check_ceiling(without, with_row, ceiling)


@pytest.mark.parametrize("number", [1e200, np.nan])
def test_the_presence_of_a_row_in_samples_stays_below_the_ceiling(number):
    """By the first step along the row's own direction, which all can read."""
    rng = np.random.default_rng(0)
    X, y = draw(N, rng)
    X_val, y_val = draw(30, rng)
    unusual = X.copy()
    unusual[0] = number
    valuer = InRunShapleyValuer(
        epsilon=1.0, batch_size=9, n_steps=4, learning_rate=1.0, random_state=0
    )
    scores = np.empty((2, 300))
    for j, rows in enumerate((X, unusual)):
        for i in range(300):
            fitted = clone(valuer).fit(rows, y, X_val=X_val, y_val=y_val)
            # A run that lost a sum would stay near its start.
            scores[j, i] = np.abs(np.diff(fitted.trajectory_, axis=0)).sum()
    # That of (1, 1e-5)-differential privacy, for replacing a row.
    check_ceiling(*scores, ceiling=math.e / (1 + math.e))


# A buyer's map that amplifies rounding ------------------------------------------------

N_ROWS = 150
N_FEATURES = 10
WIDTH = 50
N_DIMENSIONS = 8


def amplifying_maps(rng):
    """Two maps whose exact output is zero: what comes out is rounding."""
    half = rng.normal(size=(WIDTH // 2, N_FEATURES))
    weights = rng.normal(size=(N_DIMENSIONS, WIDTH // 2))
    order = rng.permutation(WIDTH)
    first = PrincipalComponents(WIDTH)
    first.mean_ = np.zeros(N_FEATURES)
    first.components_ = np.vstack([half, half])[order].copy()
    second = PrincipalComponents(N_DIMENSIONS)
    second.mean_ = np.zeros(WIDTH)
    second.components_ = np.ascontiguousarray(np.hstack([weights, -weights])[:, order])
    return first, second


def latent_squares(first, second, X):
    latent = second.transform(first.transform(X))
    return (latent[:N_ROWS] ** 2).sum(axis=1).mean()


def test_a_buyer_that_amplifies_rounding_does_not_tell_whether_a_row_is_there():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS + 1, N_FEATURES))  # rows like the seller's

    # The maps whose rounding differs most between n and n + 1 rows.
    best = None
    for _ in range(100):
        maps = amplifying_maps(rng)
        squares = [latent_squares(*maps, X[:n]) for n in (N_ROWS, N_ROWS + 1)]
        contrast = abs(np.log(squares[1] / squares[0])) if min(squares) else 0.0
        if best is None or contrast > best[0]:
            best = contrast, maps, max(squares)
    _, (first, second), square = best
    second.components_ = second.components_ / np.sqrt(square or 1.0)
    model = BuyerModel(first, second, np.zeros(N_DIMENSIONS), 1.0)

    seller_rows = np.random.default_rng(99).normal(size=(N_ROWS + 1, N_FEATURES))
    scores = np.empty((2, 200))
    seller = SellerRelease(model, 0.5, relation="add_remove")
    diagonal = np.equal(*np.tril_indices(N_DIMENSIONS))
    for j in (0, 1):
        for i in range(200):
            summary = seller.fit(seller_rows[: N_ROWS + j]).summary_
            scores[j, i] = summary.n_samples * summary.moment[diagonal].sum()
    check_ceiling(*scores, seller.privacy_.detection_ceiling)


if __name__ == "__main__":
    for cls, parameters in [
        (FederatedSemivalueValuer, {"n_rounds": 2}),
        (GradientSemivalueValuer, {}),
    ]:
        for model, n_fits in [("auto", 300), (torch.nn.Linear(3, 2), 100)]:
            *scores, ceiling = scores_of_presence(
                private(cls, model, **parameters), 1e200, n_fits
            )
            print(cls.__name__, model, *auroc(*scores), ceiling, flush=True)
