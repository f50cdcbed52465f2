"""The buyer's side: scores, their errors and floors, and the contract of a scorer."""

import pickle
from dataclasses import replace
from functools import partial
from time import process_time
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import sqrtm
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from skvalue import priarta
from skvalue.priarta import (
    PriArTaScorer,
    SellerRelease,
    Summary,
    diversity_relevance,
    wasserstein,
)
from skvalue.priarta.buyer import estimate_summaries
from skvalue.priarta.buyer import scorer as scorer_module

from .markets import fitted, gaussian_rows, quietly, released, ten_sellers

FACTS = ("mean_weight", "centre")  # of a model, in the summaries made with it

# The choice of a weight takes simulations.
FastScorer = partial(PriArTaScorer, mean_weight=0.6)


@pytest.fixture
def buyer(rng):
    return gaussian_rows(rng, 600, 4)


@pytest.fixture
def sellers(rng, buyer):
    """Rows of three sellers: like the buyer's, farther and farthest."""
    return [gaussian_rows(rng, 500, 4, shift) for shift in (0.0, 0.3, 0.6)]


# Scores -------------------------------------------------------------------------------


def plain_wasserstein(X, Z):
    """The distance of the moments of two samples, by matrix square roots."""
    covariances = [np.atleast_2d(np.cov(rows.T)) for rows in (X, Z)]
    root = sqrtm(covariances[0]).real
    cross = np.trace(sqrtm(root @ covariances[1] @ root).real)
    shift = ((X.mean(axis=0) - Z.mean(axis=0)) ** 2).sum()
    return np.sqrt(shift + sum(map(np.trace, covariances)) - 2 * cross)


@pytest.mark.parametrize("d", [2, 8, 64])
@pytest.mark.parametrize("max_norm", ["auto", 0.5])
def test_without_noise_scores_are_the_distances_of_the_samples(d, max_norm, rng):
    buyer = rng.normal(size=(1000, d))
    sellers = ten_sellers(rng, 500, d)
    expected = [plain_wasserstein(buyer, X) for X in sellers]
    scores = FastScorer(max_norm=max_norm).fit(buyer).transform(sellers)[:, 0]
    np.testing.assert_allclose(scores, expected, rtol=1e-10)


class TestExactScores:
    @pytest.fixture
    def scorer(self, buyer):
        return FastScorer().fit(buyer)

    def moments(self, scorer, X):
        rows = scorer.model_.transform(X)
        return rows.mean(axis=0), np.cov(rows.T)

    def test_of_the_buyer_is_zero(self, scorer, buyer):
        assert scorer.transform([buyer])[0, 0] == pytest.approx(0, abs=1e-12)

    def test_do_not_depend_on_the_order_of_sellers(self, scorer, sellers):
        scores = scorer.transform(sellers)
        assert np.array_equal(scores[::-1], scorer.transform(sellers[::-1]))

    def test_pairwise_distances_are_those_of_the_moments(self, scorer, sellers):
        moments = [self.moments(scorer, X) for X in sellers]
        expected = [[wasserstein(*a, *b) for b in moments] for a in moments]
        distances = scorer.pairwise_distances(scorer.summarize(sellers))
        assert distances == pytest.approx(np.array(expected), abs=1e-12)

    def test_of_no_seller_are_empty(self, scorer):
        assert scorer.transform([]).shape == (0, 1)
        assert scorer.pairwise_distances([]).shape == (0, 0)


@pytest.mark.parametrize("metric", ["wasserstein", "kl"])
@pytest.mark.parametrize("epsilon", [None, 0.8])
def test_near_seller_has_a_smaller_score_than_a_far_one(
    buyer, sellers, metric, epsilon
):
    scorer = FastScorer(metric=metric, epsilon=epsilon, noise_random_state=0).fit(buyer)
    near = np.tile(buyer[:300], (9, 1))
    far = np.tile(sellers[2] * np.array([1, 3, 1, 3]), (9, 1))
    scores = quietly(scorer.transform, [near, far])[:, 0]
    assert np.isfinite(scores).all()
    assert scores[0] < scores[1]


@pytest.mark.parametrize("epsilon", [None, 3.0])
@pytest.mark.parametrize("place", [0, 1])
def test_baselines_are_scores(buyer, epsilon, place):
    name = ("diversity", "relevance")[place]
    scorer = FastScorer(metric=name, epsilon=epsilon).fit(buyer)
    near = np.tile(buyer, (5, 1))
    # Along a direction of equal variance, noise alone would decide diversity.
    far = near * np.array([2, 3, 2, 3])
    summaries = scorer.summarize([near, far])
    scores = scorer.score_summaries(summaries)[:, 0]
    assert scores[place] < scores[1 - place]
    floors = scorer.noise_floor(summaries)
    is_significant = scores < floors if name == "relevance" else scores > floors
    assert is_significant.tolist() == [False, True]
    if epsilon is None:
        covariances = [np.cov(X.T) for X in (near, far)]
        expected = diversity_relevance(np.cov(buyer.T), np.array(covariances))
        assert scores == pytest.approx(expected[place])


@pytest.mark.parametrize(("n", "limit"), [(1000, 0.2), (5000, 0.01)])
@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_private_scores_are_near_the_exact_ones(n, limit, shift):
    rng = np.random.default_rng(n)
    scorer = FastScorer(max_norm=1.0).fit(gaussian_rows(rng, 2000, 16))
    errors = []
    for seed in range(6):
        X = gaussian_rows(rng, n, 16, shift)
        exact = scorer.transform([X])[0, 0]
        summary = released(scorer, X, seed, epsilon=0.8).summary_
        errors.append(scorer.score_summaries([summary])[0, 0] - exact)
    if not shift:
        # Equal distributions are at an exact distance of 0.02, below the noise.
        limit = max(limit, 0.03)
    assert np.sqrt(np.mean(np.square(errors))) <= limit


class TestShrinkage:
    @pytest.fixture
    def rows(self):
        """Rows of a buyer and of a seller."""
        rng = np.random.default_rng(0)
        return gaussian_rows(rng, 2000, 8), gaussian_rows(rng, 500, 8, 0.3)

    @pytest.fixture
    def shrinking(self, rows):
        return FastScorer(max_norm=1.0).fit(rows[0])

    @pytest.fixture
    def plain(self, rows):
        return FastScorer(max_norm=1.0, shrink=False).fit(rows[0])

    def test_halves_the_error_of_scores(self, rows, shrinking, plain):
        _, X = rows
        exact = shrinking.transform([X])[0, 0]
        summaries = [
            released(shrinking, X, seed, epsilon=0.8).summary_ for seed in range(30)
        ]

        def rmse(scorer):
            errors = scorer.score_summaries(summaries) - exact
            return np.sqrt(np.mean(errors**2))

        assert rmse(shrinking) < 0.5 * rmse(plain)

    def test_keeps_noisy_releases_of_the_buyer_near(self, rows, shrinking, plain):
        X, _ = rows
        summaries = [
            released(shrinking, X, seed, epsilon=0.1).summary_ for seed in range(30)
        ]
        assert np.median(shrinking.score_summaries(summaries)) < 0.1
        assert plain.score_summaries(summaries).min() > 0.3

    @pytest.mark.parametrize("epsilon", [None, 3.0])
    def test_without_it_estimates_are_the_moments_of_summaries(self, epsilon, rng):
        scorer = fitted(rng, n=400, d=2, shrink=False)
        X = gaussian_rows(rng, 3000, 2, 0.3)
        summary = released(scorer, X, epsilon=epsilon).summary_
        first, off_diagonal, last = summary.moment
        second = np.array([[first, off_diagonal], [off_diagonal, last]])
        covariance = second - np.outer(summary.mean, summary.mean)
        if epsilon is not None:
            # The squared noise of the mean biases the covariance.
            covariance += summary.noise.mean**2 * np.eye(2)
        assert np.linalg.eigvalsh(covariance).min() > 0
        buyer = scorer._buyer
        own = buyer.moments_for(summary.max_norm)
        estimates = estimate_summaries(buyer, own, [summary], shrink=False)
        np.testing.assert_allclose(estimates.mean, [summary.mean], rtol=1e-12)
        np.testing.assert_allclose(
            estimates.covariance, [covariance * 3000 / 2999], rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize("shrink", [True, False])
class TestMeanWeight:
    @pytest.fixture
    def rows(self):
        return gaussian_rows(np.random.default_rng(0), 600, 6)

    @pytest.fixture
    def parameters(self, shrink):
        return {"max_norm": 1.0, "epsilon": 0.8, "shrink": shrink}

    @pytest.fixture
    def chosen(self, rows, parameters):
        return PriArTaScorer(**parameters).fit(rows).model_.mean_weight

    def test_is_chosen_from_the_rows_of_the_buyer_alone(
        self, rows, parameters, chosen, shrink
    ):
        scorer = PriArTaScorer(**parameters, random_state=0).fit(rows)
        assert scorer.model_.mean_weight == chosen

    def test_has_nearly_the_smallest_error(self, rows, parameters, chosen, shrink):
        halves = [rows[rows[:, 0] > 0], rows[rows[:, 0] <= 0]]
        exact = FastScorer(max_norm=1.0).fit(rows).transform(halves)

        def rmse(weight):
            scorer = PriArTaScorer(**parameters, mean_weight=weight).fit(rows)
            errors = []
            for seed in range(12):
                summaries = [released(scorer, X, seed).summary_ for X in halves]
                errors.append(scorer.score_summaries(summaries) - exact)
            return np.sqrt(np.mean(np.square(errors)))

        of_chosen = rmse(chosen)
        of_small = rmse(0.1)
        of_large = rmse(3.0)
        # Where moments are shrunk, a weight that is too large costs little.
        tolerance = 1.15 if shrink else 1.0
        assert of_chosen <= tolerance * min(of_chosen, of_small, of_large)
        assert of_chosen < 0.6 * of_small


# Uncertainty and interpretation -------------------------------------------------------


# Far from the buyer, where rows are similar, the noise of the mean is the covariance's
# too. Hardly any row is clipped.
@pytest.mark.parametrize(
    ("n", "epsilon", "shift", "spread"),
    [(800, None, 0.4, 0.15), (800, 3.0, 0.4, 0.15), (2000, 0.8, 0.5, 0.13)],
    ids=["exact", "private", "far"],
)
def test_errors_are_the_deviations_of_fresh_sellers(n, epsilon, shift, spread):
    rng = np.random.default_rng(1)
    scorer = FastScorer(max_norm=1.0).fit(gaussian_rows(rng, 3000, 4))
    summaries = []
    for seed in range(80):
        X = gaussian_rows(rng, n, 4, shift, spread)
        summaries.append(released(scorer, X, seed, epsilon=epsilon).summary_)
    deviation = scorer.score_summaries(summaries).std()
    errors = scorer.score_errors(summaries[:20])
    assert np.median(errors) == pytest.approx(deviation, rel=0.3)


class TestNoiseFloor:
    @pytest.mark.parametrize(
        "parameters",
        [
            {},
            {"epsilon": 0.8},
            {"epsilon": 0.8, "relation": "add_remove"},
            {"epsilon": 0.8, "shrink": False},
        ],
        ids=str,
    )
    def test_is_above_most_sellers_like_the_buyer(self, parameters):
        rng = np.random.default_rng(2)
        is_below = []
        for seed in range(10):
            buyer = gaussian_rows(rng, 400, 3)
            seller = gaussian_rows(rng, 400, 3)
            scorer = FastScorer(max_norm=1.0, noise_random_state=seed, **parameters)
            summaries = quietly(scorer.fit(buyer).summarize, [seller])
            floor = scorer.noise_floor(summaries)[0]
            is_below.append(scorer.score_summaries(summaries)[0, 0] <= floor)
            if parameters.get("relation") != "add_remove":
                assert floor == scorer.noise_floor_
        assert 0.8 <= np.mean(is_below) <= 1.0

    def test_decreases_with_rows_and_epsilon(self, buyer, sellers):
        scorer = FastScorer(max_norm=1.0, shrink=False).fit(buyer)
        few = sellers[0]
        many = np.tile(few, (10, 1))
        summaries = [
            released(scorer, X, epsilon=epsilon).summary_
            for X, epsilon in ((few, 0.8), (many, 0.8), (many, 8.0))
        ]
        floors = scorer.noise_floor(summaries)
        assert floors[0] > floors[1] > floors[2] > 0

    def test_is_simulated_once_for_equal_sellers(self, buyer, sellers):
        scorer = FastScorer(max_norm=1.0).fit(buyer)
        summary = released(scorer, sellers[0], epsilon=0.8).summary_
        start = process_time()
        floor = scorer.noise_floor([summary])[0]
        alone = process_time() - start
        assert set(scorer.noise_floor([summary] * 200)) == {floor}
        assert process_time() - start < 20 * alone + 1

    def test_is_halved_by_shrinkage(self, buyer, sellers):
        def floor(shrink):
            scorer = FastScorer(max_norm=1.0, shrink=shrink).fit(buyer)
            summary = released(scorer, sellers[0], epsilon=0.8).summary_
            return scorer.noise_floor([summary])[0]

        assert 0 < floor(True) < 0.5 * floor(False)


class TestExplain:
    def test_contributions_sum_to_the_squared_score(self, buyer, sellers):
        scorer = FastScorer().fit(buyer)
        summaries = scorer.summarize(sellers)
        contributions = scorer.explain(summaries)
        assert contributions.shape == (3, 2, 4)
        scores = scorer.score_summaries(summaries)[:, 0]
        assert contributions.sum(axis=(1, 2)) == pytest.approx(scores**2)

    def test_largest_contribution_is_the_shift_along_the_first_axis(
        self, buyer, sellers
    ):
        scorer = FastScorer().fit(buyer)
        contributions = scorer.explain(scorer.summarize(sellers))
        assert np.abs(scorer.components_[0]) == pytest.approx([1, 0, 0, 0], abs=0.2)
        largest = np.unravel_index(contributions[2].argmax(), (2, 4))
        assert largest == (0, 0)


# Maps ---------------------------------------------------------------------------------


def double(X):
    return 2 * np.asarray(X)


class TestMaps:
    @pytest.mark.parametrize(
        ("representation", "latent"),
        [
            ("identity", "gaussian"),
            ("pca", "pca"),
            (priarta.Identity(standardize=True), priarta.PrincipalComponents(2)),
            (StandardScaler(), "pca"),
            (double, "gaussian"),
        ],
        ids=["names", "pca", "objects", "scaler", "function"],
    )
    def test_any_map_orders_the_sellers(self, buyer, sellers, representation, latent):
        scorer = FastScorer(representation, latent=latent).fit(buyer)
        scores = scorer.transform(sellers)[:, 0]
        assert scores[0] < scores[1] < scores[2]

    def test_torch_module_is_run_in_evaluation_mode(self, buyer, sellers):
        torch = pytest.importorskip("torch")
        torch.manual_seed(0)
        module = torch.nn.Sequential(
            torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout()
        )
        module.train()
        scorer = FastScorer(module).fit(buyer)
        assert module.training
        assert np.array_equal(scorer.transform(sellers), scorer.transform(sellers))
        rows = scorer.model_.latent_rows(sellers[0])
        first = scorer.model_.latent_rows(sellers[0][:1])
        assert first == pytest.approx(rows[:1], rel=1e-5)
        assert module[0].weight.detach().numpy().dtype == np.float32

    def test_objects_of_parameters_are_not_fitted(self, buyer):
        scaler = StandardScaler()
        pca = priarta.PrincipalComponents(2)
        FastScorer(scaler, latent=pca).fit(buyer)
        assert not hasattr(scaler, "mean_")
        assert not hasattr(pca, "mean_")

    def test_images_are_flattened(self, rng):
        images = rng.normal(size=(50, 4, 4))
        scorer = FastScorer("pca").fit(images)
        assert scorer.transform([images[:20], images[20:]]).shape == (2, 1)


# Contract -----------------------------------------------------------------------------


class TestRefit:
    def test_pickle_gives_the_same_scores(self, buyer, sellers):
        scorer = FastScorer("pca").fit(buyer)
        copy = pickle.loads(pickle.dumps(scorer))
        assert np.array_equal(copy.transform(sellers), scorer.transform(sellers))

    def test_clone_fitted_to_the_same_rows_is_the_same(self, buyer, sellers):
        scorer = FastScorer("pca").fit(buyer)
        copy = clone(scorer).fit(buyer)
        assert np.array_equal(copy.transform(sellers), scorer.transform(sellers))
        assert copy.noise_floor_ == scorer.noise_floor_
        assert copy.model_.fingerprint == scorer.model_.fingerprint

    @pytest.mark.parametrize(
        "parameters",
        [{"metric": "kl"}, {"shrink": False}, {"random_state": 5}],
        ids=str,
    )
    def test_parameters_that_are_set_later_wait_for_the_next_fit(
        self, parameters, buyer, sellers
    ):
        scorer = FastScorer(epsilon=1.0).fit(buyer)
        summaries = scorer.summarize(sellers)
        methods = ("score_summaries", "noise_floor", "pairwise_distances")
        before = [getattr(scorer, method)(summaries) for method in methods]
        scorer.set_params(**parameters)
        for method, expected in zip(methods, before):
            values = getattr(scorer, method)(summaries)
            np.testing.assert_array_equal(values, expected)

    def test_other_rows_give_another_model(self, buyer, sellers):
        scorer = FastScorer("pca").fit(buyer)
        fingerprint = scorer.model_.fingerprint
        scorer.fit(sellers[0])
        assert scorer.model_.fingerprint != fingerprint
        assert scorer.transform([sellers[0]])[0, 0] == pytest.approx(0, abs=1e-12)

    @pytest.mark.parametrize(
        ("scale", "error", "kind"),
        [(1e-200, None, ValueError), (1.0, KeyboardInterrupt, KeyboardInterrupt)],
        ids=["refused", "interrupted"],
    )
    def test_fit_that_does_not_end_leaves_the_former(
        self, buyer, sellers, scale, error, kind, monkeypatch
    ):
        scorer = PriArTaScorer(epsilon=0.8).fit(buyer)
        summaries = scorer.summarize(sellers)
        scores = scorer.score_summaries(summaries)
        before = dict(vars(scorer))
        if error is not None:
            monkeypatch.setattr(scorer_module, "choose_weight", Mock(side_effect=error))
        X = pd.DataFrame(3 * sellers[2]).add_prefix("x")
        with pytest.raises(kind):
            scorer.fit(scale * X)
        assert vars(scorer) == before
        assert np.array_equal(scorer.score_summaries(summaries), scores)


def test_tags_are_of_data_sets_and_random_with_epsilon():
    assert not get_tags(PriArTaScorer()).input_tags.two_d_array
    assert get_tags(PriArTaScorer(epsilon=1.0)).non_deterministic


def test_private_scores_are_fresh_each_time(buyer, sellers):
    scorer = FastScorer(epsilon=3.0).fit(buyer)
    assert not np.array_equal(scorer.transform(sellers), scorer.transform(sellers))


def test_summaries_are_simulated(rng):
    (summary,) = fitted(rng).summarize([np.zeros((3, 3))])
    assert isinstance(summary, Summary)


class TestOtherModels:
    @pytest.fixture
    def scorer(self, buyer):
        return FastScorer().fit(buyer)

    @pytest.fixture
    def own(self, scorer, sellers):
        return scorer.summarize(sellers[:1])[0]

    @pytest.fixture
    def foreign(self, sellers):
        """A summary that was made with another model."""
        return FastScorer().fit(sellers[1]).summarize(sellers[:1])[0]

    @pytest.mark.parametrize(
        "method", ["score_summaries", "score_errors", "noise_floor", "explain"]
    )
    def test_summary_of_another_model_is_refused(self, scorer, own, foreign, method):
        with pytest.raises(
            ValueError,
            match="summaries must be made with this buyer's model, .* at place 1",
        ):
            getattr(scorer, method)([own, foreign])

    @pytest.mark.parametrize("name", ["mean_weight", "centre"])
    def test_forged_fingerprint_is_refused(self, scorer, own, foreign, name):
        """What a fingerprint identifies is compared, too."""
        facts = {field: getattr(own, field) for field in ("model", *FACTS)}
        facts[name] = getattr(foreign, name)
        if name == "mean_weight":
            facts[name] = 0.9 * own.mean_weight
        forged = replace(foreign, **facts)
        with pytest.raises(
            ValueError, match=f"must have the {name} of the buyer's .* at place 0"
        ):
            scorer.score_summaries([forged])

    @pytest.mark.parametrize("max_norm", ["auto", 1.0])
    def test_radius_that_the_model_does_not_give_is_refused(self, buyer, max_norm):
        scorer = FastScorer(max_norm=max_norm, epsilon=0.8).fit(buyer)
        (summary,) = scorer.summarize([buyer])
        forged = replace(summary, max_norm=1.01 * summary.max_norm)
        with pytest.raises(ValueError, match="max_norm that the buyer's model allows"):
            scorer.score_summaries([forged])


class TestErrors:
    @pytest.mark.parametrize(
        ("source", "error", "message"),
        [
            (np.zeros((3, 4)), TypeError, "summaries must be paths or Summary"),
            ("a.json", FileNotFoundError, "a.json"),
        ],
        ids=["array", "no file"],
    )
    def test_anything_but_a_summary_is_refused(self, buyer, source, error, message):
        with pytest.raises(error, match=message):
            FastScorer().fit(buyer).score_summaries([source])

    def test_single_path_is_refused(self, buyer):
        with pytest.raises(TypeError, match="summaries must be a sequence of"):
            FastScorer().fit(buyer).score_summaries("a.json")

    def test_single_row_of_the_buyer_is_refused(self, buyer):
        with pytest.raises(ValueError, match="X must have at least 2 rows"):
            FastScorer().fit(buyer[:1])

    def test_nan_is_refused(self, buyer):
        with pytest.raises(ValueError, match="Input X contains NaN"):
            FastScorer().fit(buyer * np.nan)

    def test_scorer_that_is_not_fitted_is_refused(self, sellers):
        with pytest.raises(NotFittedError, match="not fitted"):
            FastScorer().transform(sellers)

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            (
                {"representation": lambda X: X + np.inf},
                "representation must give finite",
            ),
            (
                {"representation": lambda X: [1.0]},
                "representation must give an array of",
            ),
            ({"representation": "resnet"}, "'representation' parameter"),
            ({"max_norm": None}, "'max_norm' parameter"),
        ],
        ids=["infinite", "shape", "name", "norm"],
    )
    def test_invalid_parameter_is_refused(self, buyer, parameters, message):
        with pytest.raises(ValueError, match=message):
            FastScorer(**parameters).fit(buyer)

    @pytest.mark.parametrize(
        "rows", [3, None, iter([[1.0]]), np.array(3.0)], ids=lambda r: type(r).__name__
    )
    @pytest.mark.parametrize("method", ["buyer", "seller", "model"])
    def test_rows_that_cannot_be_counted_are_refused(self, buyer, rows, method):
        model = FastScorer(lambda X: np.ones((2, 1))).fit(buyer[:2]).model_
        calls = {
            "buyer": FastScorer().fit,
            "seller": SellerRelease(model).fit,
            "model": model.transform,
        }
        with pytest.raises(
            TypeError, match=f"X must have rows. Got {type(rows).__name__}"
        ):
            calls[method](rows)


class TestFramesAndSparseRows:
    NAMES = list("abcd")

    @pytest.fixture
    def frames(self, sellers):
        return [pd.DataFrame(X, columns=self.NAMES) for X in sellers]

    @pytest.fixture
    def scorer(self, buyer):
        return FastScorer().fit(pd.DataFrame(buyer, columns=self.NAMES))

    def test_frames_have_the_scores_of_arrays(self, scorer, frames, buyer, sellers):
        expected = FastScorer().fit(buyer).transform(sellers)
        assert scorer.transform(frames) == pytest.approx(expected)

    def test_single_table_is_refused(self, scorer, frames, sellers):
        for table in (frames[0], sellers[0]):
            with pytest.raises(ValueError, match="datasets must be"):
                scorer.transform(table)

    def test_mapping_is_refused(self, scorer, frames):
        with pytest.raises(ValueError, match="Got a mapping: pass its values"):
            scorer.transform({"a": frames[0]})

    def test_columns_in_another_order_are_refused(self, scorer, frames):
        reversed_columns = frames[1][self.NAMES[::-1]]
        with pytest.raises(ValueError, match="feature names should match"):
            scorer.transform([frames[0], reversed_columns])

    def test_refit_to_an_array_deletes_the_names(self, scorer, buyer):
        assert not hasattr(scorer.fit(buyer), "feature_names_in_")

    def test_sparse_rows_are_taken_by_maps_that_take_them(self, buyer, sellers):
        scorer = FastScorer(TruncatedSVD(2, random_state=0)).fit(csr_array(buyer))
        scores = scorer.transform([csr_array(X) for X in sellers])
        assert scores[0, 0] < scores[2, 0]
