"""The buyer's side: scores, errors, floors, and the table of checks for per-data-set
scorers."""

import pickle
from dataclasses import replace
from functools import partial
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from skvalue import priarta
from skvalue.priarta import PriArTaScorer, SellerRelease, Summary, wasserstein
from skvalue.priarta.buyer import estimate_summaries
from skvalue.priarta.buyer import scorer as scorer_module

from .markets import fitted, gaussian_rows, quietly, released

quick = partial(
    PriArTaScorer, mean_weight=0.6
)  # the choice of a weight takes simulations


@pytest.fixture
def market(rng):
    """A buyer and three sellers: alike, farther, farthest."""
    return gaussian_rows(rng, 600, 4), [
        gaussian_rows(rng, 500, 4, shift) for shift in (0.0, 0.3, 0.6)
    ]


# Scores -------------------------------------------------------------------------------


def test_exact_scores_are_distances_of_clipped_moments(market):
    buyer, sellers = market
    scorer = quick(max_norm=0.5).fit(buyer)
    rows = [scorer.model_.transform(X) for X in (buyer, *sellers)]
    moments = [(r.mean(axis=0), np.cov(r.T)) for r in rows]
    expected = [wasserstein(*moments[0], *m) for m in moments[1:]]
    scores = scorer.transform(sellers)
    assert scores.shape == (3, 1)
    assert scores[:, 0] == pytest.approx(expected)
    assert scorer.transform([buyer])[0, 0] == pytest.approx(0, abs=1e-12)
    assert np.array_equal(scores[::-1], scorer.transform(sellers[::-1]))
    pairs = scorer.pairwise_distances(scorer.summarize(sellers))
    assert pairs == pytest.approx(
        np.array([[wasserstein(*a, *b) for b in moments[1:]] for a in moments[1:]]),
        abs=1e-12,
    )


@pytest.mark.parametrize("metric", ["wasserstein", "kl"])
@pytest.mark.parametrize("epsilon", [None, 0.8])
def test_metrics_order_sellers(market, metric, epsilon):
    buyer, sellers = market
    near, far = buyer[:300], sellers[2] * np.array([1, 3, 1, 3])
    scorer = quick(metric=metric, epsilon=epsilon, noise_random_state=0).fit(buyer)
    score = quietly(scorer.transform, [np.tile(near, (9, 1)), np.tile(far, (9, 1))])[
        :, 0
    ]
    assert np.isfinite(score).all()
    assert score[0] < score[1]


@pytest.mark.parametrize(("n", "limit"), [(1000, 0.2), (5000, 0.01)])
@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_private_distances_are_near_the_exact_ones(n, limit, shift):
    rng = np.random.default_rng(n)
    scorer = quick(max_norm=1.0).fit(gaussian_rows(rng, 2000, 16))
    errors = []
    for seed in range(6):
        X = gaussian_rows(rng, n, 16, shift)
        exact = scorer.transform([X])[0, 0]
        sent = released(scorer, X, seed, epsilon=0.8).summary_
        errors.append(scorer.score_summaries([sent])[0, 0] - exact)
    # Alike distributions are at a distance of 0.02 exactly, below the noise.
    assert np.sqrt(np.mean(np.square(errors))) <= (limit if shift else max(limit, 0.03))


def test_shrinking_is_worth_it_and_noise_looks_less_far():
    rng = np.random.default_rng(0)
    buyer, X = gaussian_rows(rng, 2000, 8), gaussian_rows(rng, 500, 8, 0.3)
    setting = dict(max_norm=1.0, mean_weight=0.6)
    scorers = [PriArTaScorer(**setting, shrink=s).fit(buyer) for s in (True, False)]
    exact = scorers[0].transform([X])[0, 0]
    sent = [released(scorers[0], X, seed, epsilon=0.8).summary_ for seed in range(30)]
    rmse = [np.sqrt(np.mean((s.score_summaries(sent) - exact) ** 2)) for s in scorers]
    assert rmse[0] < 0.5 * rmse[1]
    loud = [
        released(scorers[0], buyer, seed, epsilon=0.1).summary_ for seed in range(30)
    ]
    assert np.median(scorers[0].score_summaries(loud)) < 0.1
    assert scorers[1].score_summaries(loud).min() > 0.3


@pytest.mark.parametrize("shrink", [True, False])
def test_weight_is_chosen_without_sellers_and_is_about_the_best(shrink):
    rng = np.random.default_rng(0)
    buyer = gaussian_rows(rng, 600, 6)
    setting = dict(max_norm=1.0, epsilon=0.8, shrink=shrink)
    chosen = PriArTaScorer(**setting).fit(buyer).model_.mean_weight
    assert (
        PriArTaScorer(**setting, random_state=0).fit(buyer).model_.mean_weight == chosen
    )
    halves = [buyer[buyer[:, 0] > 0], buyer[buyer[:, 0] <= 0]]
    exact = quick(max_norm=1.0).fit(buyer).transform(halves)
    rmse = {}
    for weight in (chosen, 0.1, 3.0):
        scorer = PriArTaScorer(**setting, mean_weight=weight).fit(buyer)
        sent = [
            [released(scorer, X, seed).summary_ for X in halves] for seed in range(12)
        ]
        errors = np.array([scorer.score_summaries(both) - exact for both in sent])
        rmse[weight] = np.sqrt(np.mean(errors**2))
    # Where moments are shrunk, a weight that is too large costs little.
    assert rmse[chosen] <= (1.15 if shrink else 1.0) * min(rmse.values())
    assert rmse[chosen] < 0.6 * rmse[0.1]


@pytest.mark.parametrize("epsilon", [None, 3.0])
def test_without_shrinking_estimates_are_the_moments_of_summaries(epsilon, rng):
    scorer = fitted(rng, n=400, d=2, shrink=False)
    sent = released(scorer, gaussian_rows(rng, 3000, 2, 0.3), epsilon=epsilon).summary_
    second = np.array([[sent.moment[0], sent.moment[1]], sent.moment[1:]])
    # The squared noise of the mean biases the covariance.
    covariance = (
        second - np.outer(sent.mean, sent.mean) + sent.noise.mean**2 * np.eye(2)
    )
    assert np.linalg.eigvalsh(covariance).min() > 0
    found = estimate_summaries(scorer._buyer, [sent], shrink=False)
    np.testing.assert_allclose(found.mean, [sent.mean], rtol=1e-12)
    np.testing.assert_allclose(
        found.covariance, [covariance * 3000 / 2999], rtol=1e-9, atol=1e-12
    )


# Uncertainty and interpretation -------------------------------------------------------


# Far out, where rows are much alike, the noise of the mean is the covariance's too.
@pytest.mark.parametrize(
    ("n", "epsilon", "shift", "width"),
    [(800, None, 0.4, 0.15), (800, 3.0, 0.4, 0.15), (2000, 0.8, 0.9, 0.1)],
)
def test_errors_are_those_of_fresh_sellers(n, epsilon, shift, width):
    rng = np.random.default_rng(1)
    scorer = quick(max_norm=1.0).fit(gaussian_rows(rng, 3000, 4))
    sent = [
        released(
            scorer, gaussian_rows(rng, n, 4, shift, width), seed, epsilon=epsilon
        ).summary_
        for seed in range(40)
    ]
    deviation = scorer.score_summaries(sent).std()
    errors = scorer.score_errors(sent[:20])
    assert np.median(errors) == pytest.approx(deviation, rel=0.3)


@pytest.mark.parametrize(
    "setting",
    [{}, dict(epsilon=0.8), dict(epsilon=0.8, relation="add_remove"),
     dict(epsilon=0.8, shrink=False)],
    ids=str,
)  # fmt: skip
def test_noise_floor_holds_sellers_like_the_buyer(setting):
    rng, same = np.random.default_rng(2), dict(max_norm=1.0, mean_weight=0.6)
    below = []
    for seed in range(10):
        buyer, seller = gaussian_rows(rng, 400, 3), gaussian_rows(rng, 400, 3)
        scorer = PriArTaScorer(noise_random_state=seed, **same, **setting).fit(buyer)
        summary = quietly(scorer.summarize, [seller])
        below.append(
            scorer.score_summaries(summary)[0, 0] <= scorer.noise_floor(summary)[0]
        )
        if setting.get("relation") != "add_remove":
            assert scorer.noise_floor(summary)[0] == scorer.noise_floor_
    assert 0.8 <= np.mean(below) <= 1.0


def test_noise_floor_falls_with_rows_and_epsilon(market):
    plain, shrunk = (
        quick(max_norm=1.0, shrink=s).fit(market[0]) for s in (False, True)
    )
    few, many = market[1][0], np.tile(market[1][0], (10, 1))
    sent = [
        released(plain, X, epsilon=epsilon).summary_
        for X, epsilon in [(few, 0.8), (many, 0.8), (many, 8.0)]
    ]
    floors = plain.noise_floor(sent)
    assert floors[0] > floors[1] > floors[2] > 0
    less = shrunk.noise_floor([released(shrunk, few, epsilon=0.8).summary_])[0]
    assert 0 < less < 0.5 * floors[0]


def test_explanation_names_the_direction(market):
    buyer, sellers = market
    scorer = quick().fit(buyer)
    summaries = scorer.summarize(sellers)
    parts = scorer.explain(summaries)
    assert parts.shape == (3, 2, 4)
    assert parts.sum(axis=(1, 2)) == pytest.approx(
        scorer.score_summaries(summaries)[:, 0] ** 2
    )
    assert np.abs(scorer.components_[0]) == pytest.approx([1, 0, 0, 0], abs=0.2)
    assert np.unravel_index(parts[2].argmax(), (2, 4)) == (0, 0)


# Maps ---------------------------------------------------------------------------------


def double(X):
    return 2 * np.asarray(X)


@pytest.mark.parametrize(
    ("representation", "latent"),
    [
        ("identity", "gaussian"),
        ("pca", "pca"),
        (priarta.Identity(standardize=True), priarta.PrincipalComponents(2)),
        (StandardScaler(), "pca"),
        pytest.param(double, "gaussian", id="function-gaussian"),
    ],
    ids=str,
)
def test_any_map_will_do(market, representation, latent):
    buyer, sellers = market
    scorer = quick(representation, latent=latent).fit(buyer)
    scores = scorer.transform(sellers)[:, 0]
    assert scores[0] < scores[1] < scores[2]


def test_torch_module_is_run_in_evaluation_mode(market):
    torch = pytest.importorskip("torch")
    buyer, sellers = market
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout()
    )
    module.train()
    scorer = quick(module).fit(buyer)
    assert module.training
    scores = [scorer.transform(sellers) for _ in range(2)]
    assert np.array_equal(*scores)
    weight = module[0].weight.detach().numpy()
    one = scorer.model_.latent_rows(sellers[0][:1])
    assert one == pytest.approx(scorer.model_.latent_rows(sellers[0])[:1], rel=1e-5)
    assert weight.dtype == np.float32


def test_given_maps_are_not_fitted_in_place(market):
    scaler, own = StandardScaler(), priarta.PrincipalComponents(2)
    quick(scaler, latent=own).fit(market[0])
    assert not hasattr(scaler, "mean_")
    assert not hasattr(own, "mean_")


def test_images_are_flattened(rng):
    images = rng.normal(size=(50, 4, 4))
    scorer = quick("pca").fit(images)
    assert scorer.transform([images[:20], images[20:]]).shape == (2, 1)


# Contract -----------------------------------------------------------------------------


def test_refit_and_pickle_score_alike(market):
    buyer, sellers = market
    scorer = quick("pca", latent="gaussian").fit(buyer)
    scores = scorer.transform(sellers)
    assert np.array_equal(pickle.loads(pickle.dumps(scorer)).transform(sellers), scores)
    again = clone(scorer).fit(buyer)
    assert np.array_equal(again.transform(sellers), scores)
    assert again.noise_floor_ == scorer.noise_floor_
    assert again.model_.fingerprint == scorer.model_.fingerprint
    scorer.fit(sellers[0])
    assert scorer.model_.fingerprint != again.model_.fingerprint
    assert scorer.transform([sellers[0]])[0, 0] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("ends", ["refused", "interrupted"])
def test_a_fit_that_does_not_end_leaves_the_former(market, ends, monkeypatch):
    buyer, sellers = market
    scorer = PriArTaScorer(epsilon=0.8).fit(buyer)
    summaries, before = scorer.summarize(sellers), dict(vars(scorer))
    scores, X = (
        scorer.score_summaries(summaries),
        pd.DataFrame(3 * sellers[2]).add_prefix("x"),
    )
    if ends == "interrupted":
        monkeypatch.setattr(
            scorer_module, "choose_weight", Mock(side_effect=KeyboardInterrupt)
        )
    with pytest.raises(ValueError if ends == "refused" else KeyboardInterrupt):
        scorer.fit(1e-200 * X if ends == "refused" else X)
    assert vars(scorer) == before
    assert np.array_equal(scorer.score_summaries(summaries), scores)


def test_tags():
    assert not get_tags(PriArTaScorer()).input_tags.two_d_array
    assert get_tags(PriArTaScorer(epsilon=1.0)).non_deterministic


def test_private_scores_are_fresh_each_time(market):
    buyer, sellers = market
    scorer = quick(epsilon=3.0).fit(buyer)
    assert not np.array_equal(scorer.transform(sellers), scorer.transform(sellers))


def test_refuses_other_models(market, rng):
    buyer, sellers = market
    scorer = quick().fit(buyer)
    other = quick().fit(sellers[1])
    good, bad = scorer.summarize(sellers[:1])[0], other.summarize(sellers[:1])[0]
    message = "summaries must be made with this buyer's model, .* at place 1"
    for method in ("score_summaries", "score_errors", "noise_floor", "explain"):
        with pytest.raises(ValueError, match=message):
            getattr(scorer, method)([good, bad])
    # A fingerprint is easily written: what it identifies is compared too.
    own = {
        name: getattr(good, name)
        for name in ("model", "max_norm", "mean_weight", "centre")
    }
    for name in ("max_norm", "mean_weight", "centre"):
        given = getattr(bad, name) if name != "mean_weight" else 0.9 * good.mean_weight
        forged = replace(bad, **{**own, name: given})
        with pytest.raises(
            ValueError, match=f"must have the {name} of the buyer's .* at place 0"
        ):
            scorer.score_summaries([forged])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s, X: s.transform(X[0]), ValueError, "datasets must be"),
        (
            lambda s, X: s.score_summaries([X[0]]),
            TypeError,
            "summaries must be paths or Summary",
        ),
        (
            lambda s, X: s.score_summaries("a.json"),
            TypeError,
            "summaries must be a sequence of",
        ),
        (lambda s, X: s.score_summaries(["a.json"]), FileNotFoundError, "a.json"),
        (lambda s, X: s.fit(X[0][:1]), ValueError, "X must have at least 2 rows"),
        (lambda s, X: s.fit(X[0] * np.nan), ValueError, "Input X contains NaN"),
        (lambda s, X: clone(s).transform(X), Exception, "not fitted"),
        *(
            (
                lambda s, X, p=parameters: s.set_params(**p).fit(X[0]),
                ValueError,
                message,
            )
            for parameters, message in (
                (
                    dict(representation=lambda X: X + np.inf),
                    "representation must give finite",
                ),
                (
                    dict(representation=lambda X: [1.0]),
                    "representation must give an array of",
                ),
                (dict(representation="resnet"), "'representation' parameter"),
                (dict(max_norm=None), "'max_norm' parameter"),
            )
        ),
    ],
)
def test_refusals(market, call, error, message):
    buyer, sellers = market
    with pytest.raises(error, match=message):
        call(quick().fit(buyer), sellers)


def test_tables_and_sparse_rows(market):
    buyer, sellers = market
    names = list("abcd")
    tables = [pd.DataFrame(X, columns=names) for X in sellers]
    scorer = quick().fit(pd.DataFrame(buyer, columns=names))
    assert scorer.transform(tables) == pytest.approx(
        quick().fit(buyer).transform(sellers)
    )
    for bad, message in (
        (tables[0], "datasets must be"),
        ({"a": tables[0]}, "Got a mapping: pass its values"),
        ([tables[0], tables[1][names[::-1]]], "feature names should match"),
    ):
        with pytest.raises(ValueError, match=message):
            scorer.transform(bad)
    assert not hasattr(scorer.fit(buyer), "feature_names_in_")
    sparse = quick(TruncatedSVD(2, random_state=0)).fit(csr_array(buyer))
    scores = sparse.transform([csr_array(X) for X in sellers])
    assert scores[0, 0] < scores[2, 0]


@pytest.mark.parametrize("bad", [3, None, iter([[1.0]]), np.array(3.0)])
def test_rows_are_no_number(market, bad):
    model = quick(lambda X: np.ones((2, 1))).fit(market[0][:2]).model_
    for call in (quick().fit, SellerRelease(model).fit, model.transform):
        with pytest.raises(
            TypeError, match=f"X must have rows. Got {type(bad).__name__}"
        ):
            call(bad)


def test_no_seller_to_score(market):
    scorer = fitted(np.random.default_rng(0))
    assert scorer.transform([]).shape == (0, 1)
    assert scorer.pairwise_distances([]).shape == (0, 0)
    assert isinstance(scorer.summarize([np.zeros((3, 3))])[0], Summary)
