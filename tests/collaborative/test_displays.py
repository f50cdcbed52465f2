"""What is drawn of parties, coalitions and posteriors."""

import sys
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from matplotlib import pyplot as plt

from skvalue import BayesianSurpriseScorer, PredictiveValueScorer
from skvalue.collaborative import (
    CoalitionValueDisplay,
    GaussianMean,
    GramRelease,
    PosteriorMarginalsDisplay,
    PrivacyTradeOffDisplay,
    RhoShapleyReward,
)

from .parties import (
    Sampled,
    noisy_sum,
    quietly,
    release_all,
    simulate,
    surprise_of,
)


@pytest.fixture
def _no_window():
    backend = matplotlib.get_backend()
    plt.switch_backend("agg")
    yield
    plt.close("all")
    plt.switch_backend(backend)


@pytest.fixture(scope="module")
def parties():
    return simulate(1)[1]


@pytest.fixture(scope="module")
def scorer(parties):
    releases = dict(zip("abc", release_all(parties, (0.2, 0.1, 0.2))))
    return surprise_of(releases, n_particles=48, min_ess=0)


@pytest.fixture(scope="module")
def scheme(scorer):
    return RhoShapleyReward(0.2, n_draws=100, random_state=0).fit(scorer)


@pytest.mark.usefixtures("_no_window")
class TestPrivacyTradeOff:
    @pytest.fixture
    def path(self, parties):
        party = GramRelease(noise_random_state=1)
        return quietly(party.path, *parties[1], renyi_epsilons=[2.5, 0.02])

    @pytest.fixture
    def others(self, scorer):
        return {name: scorer.releases_[name] for name in "ac"}

    # At the larger epsilon, b outdoes all.
    @pytest.mark.filterwarnings("ignore:No rho gives")
    def test_values_and_rewards_increase_with_epsilon(
        self, path, others, scorer, scheme
    ):
        display = PrivacyTradeOffDisplay.from_releases(
            path, others, scorer, scheme, party="b"
        )
        assert [line.get_label() for line in display.lines_][1] == "reward of the party"
        np.testing.assert_array_equal(display.lines_[0].get_xdata(), [0.02, 2.5])
        for line in display.lines_:
            low, high = line.get_ydata()
            assert low < high
        assert display.bands_ == []
        assert display.figure_ is display.ax_.figure

    def test_party_among_the_others_is_refused(self, path, others, scorer, scheme):
        with pytest.raises(
            ValueError, match="party must not be one of others. Got 'a'"
        ):
            PrivacyTradeOffDisplay.from_releases(
                path, others, scorer, scheme, party="a"
            )

    def test_repeats_are_drawn_as_mean_and_standard_error(self):
        values = np.array([[1.0, 2.0], [2.0, 4.0]])
        display = PrivacyTradeOffDisplay([0.1, 1], {"value": values}).plot()
        np.testing.assert_allclose(display.lines_[0].get_ydata(), [1.5, 3.0])
        heights = display.bands_[0].get_paths()[0].vertices[:, 1]
        assert heights.max() == pytest.approx(4.0)


@pytest.mark.usefixtures("_no_window")
class TestCoalitionValues:
    def test_bars_are_the_values_by_size_of_coalitions(self, scorer):
        _, ax = plt.subplots()
        display = CoalitionValueDisplay.from_scorer(scorer, ax=ax)
        assert display.ax_ is ax
        labels = [label.get_text() for label in ax.get_yticklabels()]
        assert labels == ["a", "b", "c", "a, b", "a, c", "b, c", "a, b, c"]
        widths = [bar.get_width() for bar in display.bars_]
        numbers = [1, 2, 4, 3, 5, 6, 7]
        np.testing.assert_allclose(widths, scorer.coalition_values_[numbers])

    @pytest.mark.parametrize("is_predictive", [False, True])
    def test_the_axis_says_what_the_values_are(self, is_predictive):
        releases = [noisy_sum(100, 40.0, 0.5), noisy_sum(80, 20.0, 0.1)]
        if is_predictive:
            name = "predictive value (nats per validation point)"
            scorer = PredictiveValueScorer(GaussianMean(0.1))
            scorer.fit(releases, y_val=[0.3, 0.5])
        else:
            name = "Bayesian surprise (nats)"
            scorer = BayesianSurpriseScorer(GaussianMean(0.1)).fit(releases)
        display = CoalitionValueDisplay.from_scorer(scorer)
        assert display.ax_.get_xlabel() == name
        lengths = [
            np.ptp(path.vertices[:, 0]) / 2
            for path in display.bars_.errorbar.lines[2][0].get_paths()
        ]
        errors = scorer.coalition_values_error_[[1, 2, 3]]
        np.testing.assert_allclose(lengths, errors)

    def test_without_errors_of_the_noise_those_of_the_computation_are_drawn(self):
        model = Sampled(GaussianMean(0.1))
        scorer = surprise_of([noisy_sum(100, 40.0, 0.5)], model, n_particles=40)
        display = CoalitionValueDisplay.from_scorer(scorer)
        (path,) = display.bars_.errorbar.lines[2][0].get_paths()
        error = scorer.coalition_computation_error_[1]
        assert np.ptp(path.vertices[:, 0]) / 2 == pytest.approx(error)

    def test_labels_of_many_coalitions_do_not_touch(self):
        display = CoalitionValueDisplay(list("abcde"), np.arange(32.0)).plot()
        display.figure_.canvas.draw()
        boxes = [label.get_window_extent() for label in display.ax_.get_yticklabels()]
        assert all(low.y1 < high.y0 for high, low in pairwise(boxes))

    def test_more_than_six_parties_are_refused(self, scorer):
        releases = [scorer.releases_["a"]] * 7
        seven = surprise_of(releases, n_particles=40, min_ess=0)
        with pytest.raises(ValueError, match="scorer must have at most 6 parties"):
            CoalitionValueDisplay.from_scorer(seven)

    def test_error_says_how_to_install_matplotlib(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
        with pytest.raises(
            ImportError, match=r"needs matplotlib: pip install 'skvalue\[plot"
        ):
            CoalitionValueDisplay(["a"], [0.0, 1.0]).plot()


@pytest.mark.usefixtures("_no_window")
class TestPosteriorMarginals:
    def test_reward_lies_between_prior_and_all_parties(self, scorer, scheme):
        display = PosteriorMarginalsDisplay.from_scheme(
            scorer, scheme, "a", parameter=1, name="second weight", random_state=0
        )
        labels = [line.get_label() for line in display.lines_]
        assert labels == ["prior", "a alone", "all parties", "reward of a"]
        peaks = [line.get_ydata().max() for line in display.lines_]
        assert peaks[0] < peaks[3] < peaks[2]
        assert display.ax_.get_xlabel() == "second weight"

    def test_unknown_party_is_refused(self, scorer, scheme):
        with pytest.raises(
            ValueError, match="party must be one of .'a', 'b', 'c'.. Got 'z'"
        ):
            PosteriorMarginalsDisplay.from_scheme(scorer, scheme, "z")
