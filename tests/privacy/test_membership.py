"""The attack on membership by values of copies."""

import numpy as np
import pytest

from skvalue import TKNNShapleyValuer
from skvalue.privacy.audit import membership_inference
from skvalue.valuers.tknn_shapley import neighbour_values

POINTS = np.random.default_rng(0).normal(size=(40, 2))
LABELS = (POINTS[:, 0] > 0).astype(int)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(400, 2))
    return X, (X[:, 0] + 0.3 * rng.normal(size=400) > 0).astype(int)


def values_of_copies(X, y, X_new, y_new):
    """Exact threshold-KNN values of rows that join."""
    near = np.linalg.norm(POINTS[:, None] - X, axis=2) <= 0.5
    joins = np.linalg.norm(POINTS[:, None] - X_new, axis=2) <= 0.5
    is_same = near & (y == LABELS[:, None])
    same = is_same.sum(axis=1)
    other = near.sum(axis=1) - same
    value_same, _ = neighbour_values(same + 1, other, 2)
    _, value_other = neighbour_values(same, other + 1, 2)
    matches = y_new == LABELS[:, None]
    values = np.where(matches, value_same[:, None], value_other[:, None])
    return (joins * values).mean(axis=0)


def attacks(score, rows, n_seeds, **options):
    return [
        membership_inference(score, *rows, random_state=seed, **options)
        for seed in range(n_seeds)
    ]


def test_members_show_in_exact_values(rows):
    reports = attacks(values_of_copies, rows, 4, n_targets=80, n_shadows=16)
    assert {report.is_member.sum() for report in reports} == {40}
    assert {report.statistics.shape for report in reports} == {(80,)}
    mean = np.mean([report.auroc for report in reports])
    assert mean - 5 * reports[0].auroc_error / 2 > 0.5


@pytest.mark.slow
def test_members_hide_in_private_values(rows):
    valuer = TKNNShapleyValuer(0.5, metric="euclidean", epsilon=1.0, denoise=False)

    def score(X, y, X_new, y_new):
        fitted = valuer.fit(X, y, X_val=POINTS, y_val=LABELS)
        return fitted.score_samples(X_new, y_new)

    (report,) = attacks(score, rows, 1, n_targets=80, n_shadows=8)
    assert abs(report.auroc - 0.5) < 4 * report.auroc_error


def test_distributions_with_and_without_the_row_are_both_used(rows):
    # With line 6 as printed there would be no OUT values: a value that only the
    # presence of the row lowers could not be seen. Here it is seen without error.
    def score(X, y, X_new, y_new):
        is_present = np.array([(row == X).all(axis=1).any() for row in X_new])
        noise = np.cos(np.arange(len(X_new)) + X.sum())
        return 1.0 - 0.5 * is_present + 0.01 * noise

    (report,) = attacks(score, rows, 1, n_targets=40)
    assert report.auroc == 1.0
    statistics = report.statistics
    assert statistics[report.is_member].min() > statistics[~report.is_member].max()


def test_error_is_the_standard_deviation_of_guesses(rows):
    rng = np.random.default_rng(0)

    def guess(X, y, X_new, y_new):
        return rng.normal(size=len(X_new))

    reports = attacks(guess, rows, 60, n_targets=40, n_shadows=4)
    aurocs = [report.auroc for report in reports]
    assert np.std(aurocs) == pytest.approx(reports[0].auroc_error, rel=0.35)
    assert abs(np.mean(aurocs) - 0.5) < 5 * reports[0].auroc_error / 60**0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_targets": 41}, "n_targets must be even"),
        ({"n_targets": 202}, "n_targets must be even, and at most half"),
        ({"n_targets": 0}, "n_targets must be"),
        ({"n_targets": 40, "n_shadows": 1}, "n_shadows must be at least 2"),
        ({"n_targets": 40, "n_shadows": 2.5}, "n_shadows must be"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(rows, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        membership_inference(values_of_copies, *rows, **options)
