"""What is drawn is what was computed."""

import numpy as np
import pytest

from skvalue.priarta import (
    DirectionsDisplay,
    PairwiseDistancesDisplay,
    SellerScoresDisplay,
)

from .markets import fitted, gaussian_rows, released

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture
def market(rng):
    """A scorer, and summaries of three sellers, the last of which is far."""
    scorer = fitted(rng)
    summaries = []
    for seed, shift in enumerate((0.0, 0.0, 0.5)):
        X = gaussian_rows(rng, 400, 3, shift)
        summaries.append(released(scorer, X, seed).summary_)
    return scorer, summaries


class TestSellerScores:
    def test_bars_are_scores_and_markers_are_floors(self, market):
        scorer, summaries = market
        _, ax = plt.subplots()
        display = SellerScoresDisplay.from_summaries(
            scorer, summaries, names="abc", ax=ax
        )
        assert display.ax_ is ax
        widths = [bar.get_width() for bar in display.bars_]
        assert widths == pytest.approx(list(scorer.score_summaries(summaries)[:, 0]))
        floors = np.asarray(display.floors_.get_offsets())[:, 0]
        assert floors == pytest.approx(scorer.noise_floor(summaries))
        assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b", "c"]

    def test_bars_below_their_floor_are_grey(self, market):
        scorer, summaries = market
        display = SellerScoresDisplay.from_summaries(scorer, summaries)
        colors = [bar.get_facecolor() for bar in display.bars_]
        is_grey = [color[:3] == color[:1] * 3 for color in colors]
        scores = scorer.score_summaries(summaries)[:, 0]
        assert is_grey == list(scores <= scorer.noise_floor(summaries))

    def test_without_floors_there_are_no_markers(self):
        assert SellerScoresDisplay([1.0]).plot().floors_ is None


def test_cells_of_pairwise_distances_show_them(market):
    scorer, summaries = market
    display = PairwiseDistancesDisplay.from_summaries(scorer, summaries)
    assert np.array_equal(
        display.image_.get_array(), scorer.pairwise_distances(summaries)
    )
    assert len(display.ax_.texts) == 9
    assert display.ax_.get_yticklabels()[2].get_text() == "seller 3"


def test_cells_of_directions_show_the_contributions(market):
    scorer, summaries = market
    display = DirectionsDisplay.from_summaries(scorer, summaries)
    contributions = scorer.explain(summaries).reshape(3, 6)
    assert np.array_equal(display.image_.get_array(), contributions)


def scores_display(n_sellers, **options):
    return SellerScoresDisplay(np.ones(n_sellers), **options)


def distances_display(n_sellers, **options):
    return PairwiseDistancesDisplay(np.ones((n_sellers, n_sellers)), **options)


def directions_display(n_sellers, **options):
    return DirectionsDisplay(np.ones((n_sellers, 2, 3)), **options)


DISPLAYS = pytest.mark.parametrize(
    "make_display",
    [
        scores_display,
        distances_display,
        pytest.param(directions_display, marks=pytest.mark.slow),
    ],
)


@DISPLAYS
def test_another_number_of_names_is_refused(make_display):
    with pytest.raises(
        ValueError, match="names must have one entry per seller, 2. Got 1"
    ):
        make_display(2, names=["a"]).plot()


@DISPLAYS
def test_names_of_30_sellers_do_not_touch(make_display):
    display = make_display(30).plot()
    display.figure_.canvas.draw()
    boxes = [label.get_window_extent() for label in display.ax_.get_yticklabels()]
    middles = np.sort([(box.y0 + box.y1) / 2 for box in boxes])
    assert np.diff(middles).min() > 0.7 * max(box.height for box in boxes)
