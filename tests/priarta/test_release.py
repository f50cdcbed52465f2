"""A seller's release: exact sensitivities, honest noise, and what it says about
itself."""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize

from skvalue.exceptions import VoidGuaranteeWarning
from skvalue.priarta import SellerRelease
from skvalue.priarta.buyer import estimate_summaries
from skvalue.priarta.seller import COUNT_WEIGHT, moment_statistic, statistic_sensitivity
from skvalue.privacy import Ledger, get_epsilon, grid_width

from .markets import fitted, gaussian_rows, quietly, released


def in_ball(z):
    return z / max(1.0, np.linalg.norm(z))


@pytest.mark.parametrize(
    ("relation", "weight"),
    [
        *(("replace", weight) for weight in (0.3, 0.6, 1.4, 2.0)),
        ("null", 0.6),
        ("add_remove", 0.6),
    ],
)
def test_sensitivity_is_exact(relation, weight, rng):
    others = gaussian_rows(rng, 5, 3)

    def change(z):
        one = [in_ball(z[:3])]
        other = [in_ball(z[3:])] if relation == "replace" else []
        if relation == "null":
            other = [np.zeros(3)]
        before, after = (
            moment_statistic(np.vstack([others, *rows]), weight, relation)
            for rows in (one, other)
        )
        return -np.linalg.norm(before - after)

    search = partial(minimize, change, method="Nelder-Mead", options=dict(maxiter=800))
    found = max(-search(rng.normal(size=6) * 2).fun for _ in range(4))
    claimed = statistic_sensitivity(weight, relation)
    assert 0.99 * claimed <= found <= claimed


def test_one_release_of_both_needs_less_noise_than_two():
    # With f and 1 - f of the squared budget, noise is 2 / sqrt f and sqrt 2 / sqrt(1 -
    # f).
    for weight in (0.3, 0.6, 1.0):
        together = statistic_sensitivity(weight, "replace")
        fraction = 1 - 2 / together**2  # the same noise on the second moment
        assert together / weight < 0.8 * 2 / np.sqrt(fraction)


@pytest.mark.parametrize(
    ("setting", "epsilon"),
    [
        *(
            (dict(relation=relation), 0.8)
            for relation in ("replace", "null", "add_remove")
        ),
        (dict(epsilon=3.0, delta=1e-7), 3.0),
        (dict(epsilon=1e-8), 1e-8),
    ],
)
def test_epsilon_is_spent_and_stated(setting, epsilon, rng):
    scorer = fitted(rng)
    seller = SellerRelease(scorer.model_, **setting).fit(gaussian_rows(rng, 200, 3))
    summary, report = seller.summary_, seller.privacy_
    spent = get_epsilon(summary.event, summary.delta)
    assert epsilon * (1 - 1e-6) <= spent <= epsilon * (1 + 1e-9) + 1e-12
    assert report.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert f"({epsilon:g}, {summary.delta:g})" in summary.guarantee
    assert report.relation == summary.relation == setting.get("relation", "replace")
    assert report.notion == "central"
    assert "the buyer's data" in " ".join(str(report).split())
    assert "running times and error messages" in report.not_protected


def test_noise_is_of_the_stated_size(rng):
    scorer = fitted(rng, max_norm=2.0)
    X = gaussian_rows(rng, 300, 3)
    exact = SellerRelease(scorer.model_, None).fit(X).summary_
    for relation in ("replace", "null"):
        sent = [
            released(scorer, X, seed, relation=relation).summary_ for seed in range(80)
        ]
        means = np.array([s.mean - exact.mean for s in sent])
        assert means.std() == pytest.approx(sent[0].noise.mean, rel=0.15)
        gaps = np.array([s.moment - exact.moment for s in sent])
        diagonal, off = gaps[:, [0, 2, 5]], gaps[:, [1, 3, 4]]
        assert diagonal.std() == pytest.approx(sent[0].noise.moment, rel=0.15)
        assert off.std() == pytest.approx(sent[0].noise.moment / np.sqrt(2), rel=0.15)


def test_what_leaves_is_on_a_grid(rng):
    scorer = fitted(rng)
    for relation in ("replace", "null"):
        seller = SellerRelease(scorer.model_, relation=relation).fit(
            gaussian_rows(rng, 300, 3)
        )
        sent = seller.summary_
        steps = sent.mean * sent.mean_weight * 300 / grid_width(sent.noise_scale)
        np.testing.assert_allclose(steps, np.rint(steps), atol=1e-3)


def test_moments_are_unbiased(rng):
    scorer = fitted(rng)
    X = gaussian_rows(rng, 4000, 3, 0.2)
    X -= X.mean(axis=0)
    rows = scorer.model_.transform(X)
    covariance = np.cov(rows.T)
    sent = [released(scorer, X, seed, epsilon=20.0).summary_ for seed in range(100)]
    found = estimate_summaries(scorer._buyer, sent, shrink=False).covariance
    error = found.std(axis=0) / np.sqrt(len(sent))
    assert (np.abs(found.mean(axis=0) - covariance) < 5 * error).all()
    # Without the correction for the noise in the mean the diagonal would be off by
    # this:
    assert sent[0].noise.mean ** 2 > 0


def test_number_of_rows_is_noisy_where_it_is_private(rng):
    scorer = fitted(rng)
    X = gaussian_rows(rng, 500, 3)
    sent = [
        released(scorer, X, seed, relation="add_remove").summary_ for seed in range(80)
    ]
    counts, scale = [s.n_samples for s in sent], sent[0].noise_scale
    assert np.mean(counts) == pytest.approx(
        500, abs=5 * scale / COUNT_WEIGHT / len(sent) ** 0.5
    )
    assert np.std(counts) == pytest.approx(scale / COUNT_WEIGHT, rel=0.2)
    few = [
        released(scorer, X[:3], seed, relation="add_remove").summary_
        for seed in range(60)
    ]
    assert min(s.n_samples for s in few) == 2  # impossible sums are still a summary
    assert all(np.isfinite(scorer.score_summaries(few)))


def test_clear_moments_are_those_of_the_rows(rng):
    scorer = fitted(rng)
    X = gaussian_rows(rng, 60, 3, 0.4)
    sent = SellerRelease(scorer.model_, None).fit(X).summary_
    found = estimate_summaries(scorer._buyer, [sent], shrink=False)
    rows = scorer.model_.transform(X)
    assert found.mean[0] == pytest.approx(rows.mean(axis=0))
    assert found.covariance[0] == pytest.approx(np.cov(rows.T))
    assert np.linalg.norm(rows, axis=1).max() <= 1 + 1e-12


def test_rows_far_out_are_clipped_and_do_not_overflow(rng):
    scorer = fitted(rng)
    X = np.array([[1e200, 0, 0], [0, -1e160, 0], [0.1, 0, 0]])
    rows = scorer.model_.transform(X)
    assert np.linalg.norm(rows, axis=1)[:2] == pytest.approx([1.0, 1.0])


def test_a_seed_voids(rng):
    scorer = fitted(rng)
    seller = released(scorer, gaussian_rows(rng, 100, 3), 5)
    assert seller.summary_.seeded
    assert seller.summary_.guarantee is seller.privacy_.guarantee is None
    again = released(scorer, gaussian_rows(np.random.default_rng(1), 100, 3), 5)
    assert again.summary_.noise_scale == seller.summary_.noise_scale
    X = gaussian_rows(rng, 100, 3)
    same = [released(scorer, X, 5).summary_.to_json() for _ in range(2)]
    free = [SellerRelease(scorer.model_).fit(X).summary_.to_json() for _ in range(2)]
    assert same[0] == same[1]
    assert free[0] != free[1]


def test_messages_show_no_entry(rng):
    scorer, X = fitted(rng), gaussian_rows(rng, 50, 3)
    for bad in (X + 12345j, np.full(X.shape, "12345?")):
        with pytest.raises(ValueError, match="X must hold (real )?numbers") as raised:
            SellerRelease(scorer.model_).fit(bad)
        assert "12345" not in str(raised.value)


def test_a_large_delta(rng):
    scorer, X = fitted(rng), gaussian_rows(rng, 50, 3)
    with pytest.warns(
        VoidGuaranteeWarning, match="delta=0.02 and n=50, even a release"
    ) as found:
        SellerRelease(scorer.model_, delta=0.02).fit(X)
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SellerRelease(scorer.model_, delta=0.019).fit(X)
        SellerRelease(scorer.model_, None, delta=0.5).fit(X)


def test_ledger_is_charged_before_noise(rng):
    scorer, X = fitted(rng), gaussian_rows(rng, 100, 3)
    ledger = Ledger(None, "rows", epsilon=1.0, delta=1e-5)
    SellerRelease(scorer.model_, 0.8, ledger=ledger).fit(X)
    assert ledger.spent == pytest.approx(0.8)
    assert [charge.label for charge in ledger.charges] == ["SellerRelease"]
    refused = SellerRelease(scorer.model_, 0.8, ledger=ledger)
    with pytest.raises(
        ValueError, match="the release must fit what is left of the budget"
    ):
        refused.fit(X)
    assert not hasattr(refused, "summary_")
    SellerRelease(scorer.model_, None, ledger=ledger).fit(X)
    assert ledger.n_charges == 1


@pytest.mark.parametrize(
    ("setting", "X", "message"),
    [
        (dict(epsilon=-1.0), np.ones((100, 3)), "'epsilon' parameter of SellerRelease"),
        (
            dict(relation="near"),
            np.ones((100, 3)),
            "'relation' parameter of SellerRelease",
        ),
        ({}, np.zeros((5, 2)), "X must have 3 columns, as the buyer's rows. Got 2"),
        ({}, np.zeros((1, 3)), "X must have at least 2 rows"),
        ({}, np.full((5, 3), np.nan), "contains NaN"),
    ],
)
def test_refusals(setting, X, message, rng):
    with pytest.raises(ValueError, match=message):
        SellerRelease(fitted(rng).model_, **setting).fit(X)


def test_nothing_clear_is_kept(rng):
    scorer = fitted(rng)
    seller = quietly(SellerRelease(scorer.model_).fit, gaussian_rows(rng, 100, 3))
    assert {name for name in vars(seller) if name.endswith("_")} == {
        "summary_",
        "privacy_",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert replace(seller.summary_).to_json() == seller.summary_.to_json()
