"""All roles at once, and what is drawn of them."""

import sys
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt

from skvalue.collaborative import (
    BayesianLogistic,
    BayesianSurpriseScorer,
    CoalitionValueDisplay,
    GaussianMean,
    GramRelease,
    LogisticRelease,
    MeanRelease,
    PosteriorMarginalsDisplay,
    PrivacyTradeOffDisplay,
    PrivateCollaboration,
    RhoShapleyReward,
)

from .parties import linear_model, quietly, release_all, simulate


@pytest.fixture(scope="module")
def rows():
    _, parties = simulate(2, counts=(60, 90, 150))
    X = np.concatenate([X for X, _ in parties])
    y = np.concatenate([y for _, y in parties])
    groups = np.repeat(["b", "a", "c"], [60, 90, 150])
    order = np.random.default_rng(0).permutation(300)
    return X[order], y[order], groups[order]


class TestWrapper:
    def test_is_the_roles_one_after_the_other(self, rows):
        X, y, groups = rows
        wrapper = PrivateCollaboration(None, linear_model(), epsilon=None, random_state=0)
        values = wrapper.fit_transform(X, y, groups=groups)
        releases = {
            name: GramRelease(None).fit(X[groups == name], y[groups == name]).release_
            for name in "abc"
        }
        scorer = BayesianSurpriseScorer(linear_model(), random_state=0).fit(releases)
        np.testing.assert_array_equal(wrapper.values_, scorer.values_)
        assert wrapper.groups_.tolist() == ["a", "b", "c"]
        sizes = [90, 60, 150]
        for name, value, size in zip("abc", scorer.values_, sizes):
            np.testing.assert_allclose(values[groups == name, 0], value / size)
        assert values.sum() == pytest.approx(scorer.grand_value_)
        assert set(wrapper.rewards_) == {"a", "b", "c"}
        assert wrapper.privacy_ == dict.fromkeys("abc")

    def test_epsilon_by_party(self, rows):
        X, y, groups = rows
        epsilon = {"a": 0.1, "b": None, "c": 1.0}
        wrapper = PrivateCollaboration(
            model=linear_model(),
            epsilon=None,
            renyi_epsilon=epsilon,
            scheme=RhoShapleyReward(0.1),
            random_state=0,
        ).fit(X, y, groups=groups)
        assert {k: r.renyi_epsilon for k, r in wrapper.releases_.items()} == epsilon
        assert wrapper.scheme_.rho_ == 0.1
        assert wrapper.privacy_["b"] is None

    def test_other_models(self, rows):
        X, y, groups = rows
        classes = PrivateCollaboration(
            LogisticRelease(classes=(False, True)), BayesianLogistic(classes=(False, True)),
            scorer=BayesianSurpriseScorer(None, n_particles=80, random_state=0), renyi_epsilon=2.0,
            random_state=0,
        )  # fmt: skip
        assert classes.fit(X, y > 0, groups=groups).values_.shape == (3,)
        numbers = PrivateCollaboration(MeanRelease(), GaussianMean(), random_state=0)
        assert numbers.fit(y, groups=groups).row_values_.shape == (300,)

    def test_a_fit_that_fails_leaves_the_former(self, rows):
        _, y, groups = rows
        epsilon = dict.fromkeys("abc", 0.1)
        wrapper = PrivateCollaboration(MeanRelease(), GaussianMean(), renyi_epsilon=epsilon)
        before = dict(vars(wrapper.fit(y, groups=groups)))
        with pytest.raises(ValueError, match="Got none for .'A', 'B', 'C'."):
            wrapper.fit(y, groups=np.char.upper(groups))
        assert vars(wrapper) == before

    def test_refuses(self, rows):
        X, y, groups = rows
        with pytest.raises(ValueError, match="groups must name the party of every row. Got None"):
            PrivateCollaboration().fit(X, y)
        with pytest.raises(ValueError, match="groups must have one entry per row of X"):
            PrivateCollaboration().fit(X, y, groups=groups[:9])
        with pytest.raises(ValueError, match="an entry for every party. Got none for .'b', 'c'."):
            PrivateCollaboration(epsilon={"a": 1}).fit(X, y, groups=groups)
        with pytest.raises(ValueError, match="The 'scheme' parameter of PrivateCollaboration"):
            PrivateCollaboration(scheme="temper").fit(X, y, groups=groups)


@pytest.fixture
def _no_window():
    backend = matplotlib.get_backend()
    plt.switch_backend("agg")
    yield
    plt.close("all")
    plt.switch_backend(backend)


@pytest.fixture(scope="module")
def game():
    _, parties = simulate(1)
    releases = dict(zip("abc", release_all(parties, (0.2, 0.1, 0.2))))
    scorer = BayesianSurpriseScorer(linear_model(), n_particles=160, random_state=0)
    scorer.fit(releases)
    return parties, scorer, RhoShapleyReward(0.2, random_state=0).fit(scorer)


@pytest.mark.usefixtures("_no_window")
class TestDisplays:
    @pytest.mark.filterwarnings("ignore:No rho gives")  # at the larger epsilon, b outdoes all
    def test_trade_off(self, game):
        parties, scorer, scheme = game
        path = quietly(
            GramRelease(noise_random_state=1).path, *parties[1], renyi_epsilons=[2.5, 0.02]
        )
        others = {name: scorer.releases_[name] for name in "ac"}
        display = PrivacyTradeOffDisplay.from_releases(path, others, scorer, scheme, party="b")
        assert [line.get_label() for line in display.lines_][1] == "reward of the party"
        np.testing.assert_array_equal(display.lines_[0].get_xdata(), [0.02, 2.5])
        for line in display.lines_:
            low, high = line.get_ydata()
            assert low < high
        assert display.bands_ == []
        assert display.figure_ is display.ax_.figure
        with pytest.raises(ValueError, match="party must not be one of others. Got 'a'"):
            PrivacyTradeOffDisplay.from_releases(path, others, scorer, scheme, party="a")

    def test_trade_off_of_repeats(self):
        values = np.array([[1.0, 2.0], [2.0, 4.0]])
        display = PrivacyTradeOffDisplay([0.1, 1], {"value": values}).plot()
        np.testing.assert_allclose(display.lines_[0].get_ydata(), [1.5, 3.0])
        heights = display.bands_[0].get_paths()[0].vertices[:, 1]
        assert heights.max() == pytest.approx(4.0)

    def test_coalitions(self, game):
        _, scorer, _ = game
        _, ax = plt.subplots()
        display = CoalitionValueDisplay.from_scorer(scorer, ax=ax)
        assert display.ax_ is ax
        labels = [label.get_text() for label in ax.get_yticklabels()]
        assert labels == ["a", "b", "c", "a, b", "a, c", "b, c", "a, b, c"]
        widths = [bar.get_width() for bar in display.bars_]
        np.testing.assert_allclose(widths, scorer.coalition_values_[[1, 2, 4, 3, 5, 6, 7]])

    def test_labels_of_many_coalitions_do_not_touch(self):
        display = CoalitionValueDisplay(list("abcde"), np.arange(32.0)).plot()
        display.figure_.canvas.draw()
        boxes = [label.get_window_extent() for label in display.ax_.get_yticklabels()]
        assert all(low.y1 < high.y0 for high, low in pairwise(boxes))

    def test_too_many_to_draw(self, game):
        _, scorer, _ = game
        releases = [scorer.releases_["a"]] * 7
        many = BayesianSurpriseScorer(linear_model(), n_particles=40, min_ess=0, random_state=0)
        with pytest.raises(ValueError, match="scorer must have at most 6 parties to draw. Got 7"):
            CoalitionValueDisplay.from_scorer(many.fit(releases))

    def test_marginals(self, game):
        _, scorer, scheme = game
        display = PosteriorMarginalsDisplay.from_scheme(
            scorer, scheme, "a", parameter=1, name="second weight", random_state=0
        )
        labels = [line.get_label() for line in display.lines_]
        assert labels == ["prior", "a alone", "all parties", "reward of a"]
        peaks = [line.get_ydata().max() for line in display.lines_]
        assert peaks[0] < peaks[3] < peaks[2]
        assert display.ax_.get_xlabel() == "second weight"
        with pytest.raises(ValueError, match="party must be one of .'a', 'b', 'c'.. Got 'z'"):
            PosteriorMarginalsDisplay.from_scheme(scorer, scheme, "z")


def test_says_how_to_get_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"needs matplotlib to draw: pip install 'skvalue\[plot"):
        CoalitionValueDisplay(["a"], [0.0, 1.0]).plot()
