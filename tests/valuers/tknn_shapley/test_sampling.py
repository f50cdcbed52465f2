"""Private counts of fresh samples of the rows, as the paper runs them."""

import pickle
from itertools import product

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy.sparse import csr_array

from skvalue import TKNNShapleyValuer
from skvalue.privacy import Ledger, Release, SeededNoiseWarning, get_epsilon
from skvalue.valuers.tknn_shapley import neighbour_values

N_COPIES = 200  # of a problem, far from each other, in one fit


def sampled(epsilon=1.0, sampling_rate=0.3, radius=0.5, **parameters):
    settings = {"denoise": False, "max_contributions": None, **parameters}
    return TKNNShapleyValuer(
        radius,
        metric="euclidean",
        epsilon=epsilon,
        sampling_rate=sampling_rate,
        **settings,
    )


@pytest.fixture
def no_noise(monkeypatch):
    """Releases are the counts of the samples."""
    monkeypatch.setattr(
        Release, "of", lambda release, counts: np.array(counts, dtype=float)
    )


X = np.array([[0.0], [0.1], [0.2], [0.6], [3.0]])
Y = np.array([0, 1, 0, 0, 1])
X_VAL = np.array([[0.0], [0.4]])
Y_VAL = np.array([0, 1])


def expected_values(rate, semivalue="shapley"):
    """Means over all samples of the others, with their probabilities."""
    values = np.zeros(len(X))
    for center, label in zip(X_VAL, Y_VAL):
        inside = np.abs(X - center)[:, 0] <= 0.5
        for i in np.flatnonzero(inside):
            others = [j for j in np.flatnonzero(inside) if j != i]
            for chosen in product([False, True], repeat=len(others)):
                n_chosen = sum(chosen)
                weight = rate**n_chosen * (1 - rate) ** (len(others) - n_chosen)
                members = [i, *np.array(others, int)[list(chosen)]]
                same = (Y[members] == label).sum()
                both = neighbour_values(same, len(members) - same, 2, semivalue)
                values[i] += weight * both[int(Y[i] != label)]
    return values / len(X_VAL)


def copies(**parameters):
    """Values of the rows in every copy of the problem, (N_COPIES, n_rows)."""
    offsets = 100.0 * np.arange(N_COPIES)[:, None]
    valuer = sampled(**parameters).fit(
        (offsets + X[:, 0]).reshape(-1, 1),
        np.tile(Y, N_COPIES),
        X_val=(offsets + X_VAL[:, 0]).reshape(-1, 1),
        y_val=np.tile(Y_VAL, N_COPIES),
    )
    return N_COPIES * valuer.values_.reshape(N_COPIES, -1)


@pytest.mark.parametrize(("rate", "semivalue"), [(0.3, "shapley"), (0.6, "banzhaf")])
def test_values_are_on_average_those_of_a_row_that_joins_a_sample(
    no_noise, rate, semivalue
):
    draws = np.concatenate(
        [copies(sampling_rate=rate, semivalue=semivalue) for _ in range(3)]
    )
    error = draws.std(axis=0) / np.sqrt(len(draws))
    gap = np.abs(draws.mean(axis=0) - expected_values(rate, semivalue))
    assert (gap <= 6 * error + 1e-12).all()
    assert error[:4].min() > 0


def test_at_rate_one_values_are_the_exact_ones(no_noise):
    exact = TKNNShapleyValuer(0.5, metric="euclidean")
    expected = exact.fit(X, Y, X_val=X_VAL, y_val=Y_VAL).values_
    valuer = sampled(sampling_rate=1.0).fit(X, Y, X_val=X_VAL, y_val=Y_VAL)
    assert valuer.values_ == pytest.approx(expected)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2))
    y = (X[:, 0] > 0).astype(int)
    X_val = rng.normal(size=(30, 2))
    return {"X": X, "y": y, "X_val": X_val, "y_val": (X_val[:, 0] > 0).astype(int)}


class TestCounts:
    def test_are_those_of_samples_and_not_rescaled(self, no_noise, problem):
        exact = TKNNShapleyValuer(0.5, metric="euclidean").fit(**problem).counts_
        rows = np.arange(30)
        same = exact[problem["y_val"], rows]
        expected = 0.1 * np.array([same, exact.sum(axis=0) - same])
        fits = [sampled(1.0, 0.1).fit(**problem).counts_ for _ in range(30)]
        error = np.sqrt(0.9 * np.maximum(expected, 0.1) / 30)
        assert (np.abs(np.mean(fits, axis=0) - expected) < 6 * error + 0.05).all()

    def test_of_points_at_one_place_have_samples_of_their_own(self, no_noise):
        X = np.zeros((4000, 1))
        points = {"X_val": np.zeros((20, 1)), "y_val": np.arange(20) % 2}
        counts = sampled(1.0, 0.5).fit(X, np.zeros(4000, int), **points).counts_
        totals = counts.sum(axis=0)
        assert len(set(totals)) > 5
        assert totals == pytest.approx(2000, abs=200)


class TestAccounting:
    @pytest.mark.parametrize("relation", ["add_remove", "null"])
    def test_is_the_composition_of_sampled_gaussians(self, problem, relation):
        ledger = Ledger(None, "rows", epsilon=1.0, delta=1e-5)
        valuer = sampled(0.8, 0.1, relation=relation, ledger=ledger).fit(**problem)
        (charge,) = ledger.charges
        event = charge.event
        assert (event.count, event.event.probability) == (30, 0.1)
        assert event.event.event.sensitivity == 1.0
        loss = privacy_loss_distribution.from_gaussian_mechanism(
            event.event.event.scale,
            value_discretization_interval=1e-4,
            sampling_prob=0.1,
        )
        epsilon = loss.self_compose(30).get_epsilon_for_delta(1e-5)
        assert epsilon == pytest.approx(0.8, rel=1e-2)
        assert epsilon <= 0.8 * (1 + 1e-6)
        assert valuer.privacy_.epsilon == pytest.approx(epsilon, rel=1e-3)
        assert get_epsilon(event, 1e-5) <= 0.8

    def test_report_says_so(self, problem):
        report = str(sampled(0.8, 0.1).fit(**problem).privacy_).replace("\n", " ")
        assert "30 times continuous Gaussian noise" in report
        assert "a secret sample that holds each row with probability 0.1" in report
        assert "a fresh one is drawn for each validation point" in report

    def test_noise_is_far_below_that_without_samples(self, problem):
        plain = TKNNShapleyValuer(
            0.5, metric="euclidean", epsilon=1.0, max_contributions=None
        )
        scales = []
        for valuer in (sampled(1.0, 0.01), plain):
            ledger = Ledger(None, "rows", epsilon=3.0, delta=1e-5)
            valuer.set_params(ledger=ledger).fit(**problem)
            event = ledger.charges[0].event
            scales.append(getattr(event, "event", event))
        assert scales[0].event.scale < 0.2 * scales[1].scale


@pytest.mark.filterwarnings("ignore::skvalue.privacy.SeededNoiseWarning")
def test_stated_errors_are_those_of_fresh_fits(problem):
    valuers = [sampled(1.0, 0.1, noise_random_state=seed) for seed in range(40)]
    fits = [valuer.fit(**problem) for valuer in valuers]
    deviation = np.std([valuer.values_ for valuer in fits], axis=0)
    stated = np.mean([valuer.values_error_ for valuer in fits], axis=0)
    has_value = deviation > 0
    ratio = np.median(deviation[has_value] / stated[has_value])
    assert 1 / 1.3 < ratio < 1.3


@pytest.mark.parametrize("engine", ["auto", "native"])
def test_sparse_rows_have_the_values_of_dense_ones(problem, engine):
    def values(X):
        valuer = sampled(1.0, 0.1, noise_random_state=0, engine=engine)
        with pytest.warns(SeededNoiseWarning):
            return valuer.fit(**{**problem, "X": X}).values_

    dense = values(problem["X"])
    np.testing.assert_allclose(values(csr_array(problem["X"])), dense)


def test_groups_are_sums_of_rows(problem):
    groups = np.arange(800) % 4
    valuer = sampled(1.0, 0.1, noise_random_state=0)
    with pytest.warns(SeededNoiseWarning):
        rows = valuer.fit(**problem).values_
    with pytest.warns(SeededNoiseWarning):
        of_groups = valuer.fit(**problem, groups=groups).values_
    np.testing.assert_allclose(of_groups, np.bincount(groups, rows))


def test_a_row_that_joins_has_the_value_of_one_in_no_sample(no_noise):
    valuer = sampled(1.0, 0.5).fit(X, Y, X_val=X_VAL, y_val=Y_VAL)
    counts = np.rint(valuer.counts_)
    joined = neighbour_values(*counts.astype(int), 2, joins=True)
    assert valuer.score_samples([[0.0]], [0])[0] == pytest.approx(
        (joined[0][0] + joined[1][1]) / 2
    )


@pytest.mark.parametrize("sampling_rate", [None, 0.3])
def test_no_rows_are_not_refused(sampling_rate):
    """The number of rows is private."""
    valuer = sampled(sampling_rate=sampling_rate, max_contributions=None)
    valuer.fit(X[:0], Y[:0], X_val=X_VAL, y_val=Y_VAL)
    assert valuer.values_.shape == (0,)


def test_groups_of_no_rows_are_not_refused():
    """A refusal would tell the number of rows, which is private."""
    valuer = sampled().fit(X[:0], Y[:0], X_val=X_VAL, y_val=Y_VAL, groups=[])
    assert valuer.values_.shape == (0,)


def test_pickle_has_no_sample(problem):
    valuer = pickle.loads(pickle.dumps(sampled(1.0, 0.1).fit(**problem)))
    assert valuer.counts_.shape == (2, 30)
    with pytest.raises(AttributeError):
        _ = valuer.values_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": None}, "sampling_rate must be None without epsilon"),
        ({"denoise": True}, "denoise must be False with sampling_rate"),
        ({"max_contributions": "auto"}, "max_contributions must be None with sampling"),
        ({"max_contributions": 3}, "max_contributions must be None with sampling"),
        ({"relation": "replace"}, "relation must be 'add_remove' or 'null' with"),
        ({"sampling_rate": 0.0}, "'sampling_rate' parameter"),
        ({"sampling_rate": 1.5}, "'sampling_rate' parameter"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        sampled(**parameters).fit(X, Y, X_val=X_VAL, y_val=Y_VAL)
