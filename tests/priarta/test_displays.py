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
def close():
    yield
    plt.close("all")


@pytest.fixture
def market(rng):
    scorer = fitted(rng)
    return scorer, [
        released(scorer, gaussian_rows(rng, 400, 3, shift), place).summary_
        for place, shift in enumerate((0.0, 0.0, 0.5))
    ]


def test_scores(market):
    scorer, summaries = market
    _, ax = plt.subplots()
    display = SellerScoresDisplay.from_summaries(scorer, summaries, names="abc", ax=ax)
    assert display.ax_ is ax
    scores = scorer.score_summaries(summaries)[:, 0]
    assert [bar.get_width() for bar in display.bars_] == pytest.approx(list(scores))
    floors = np.asarray(display.floors_.get_offsets())[:, 0]
    assert floors == pytest.approx(scorer.noise_floor(summaries))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b", "c"]
    grey = [
        bar.get_facecolor()[:3] == bar.get_facecolor()[:1] * 3 for bar in display.bars_
    ]
    assert grey == list(scores <= scorer.noise_floor(summaries))
    assert SellerScoresDisplay([1.0]).plot(ax).floors_ is None


def test_distances(market):
    scorer, summaries = market
    display = PairwiseDistancesDisplay.from_summaries(scorer, summaries)
    assert np.array_equal(
        display.image_.get_array(), scorer.pairwise_distances(summaries)
    )
    assert len(display.ax_.texts) == 9
    assert display.ax_.get_yticklabels()[2].get_text() == "seller 3"


def test_directions(market):
    scorer, summaries = market
    drawn = DirectionsDisplay.from_summaries(scorer, summaries).image_.get_array()
    assert np.array_equal(drawn, scorer.explain(summaries).reshape(3, 6))


DISPLAYS = pytest.mark.parametrize(
    ("display", "shape"),
    [
        (SellerScoresDisplay, ()),
        (PairwiseDistancesDisplay, None),
        pytest.param(DirectionsDisplay, (2, 3), marks=pytest.mark.slow),
    ],
)


def display_of(display, shape, n, **options):
    return display(np.ones((n, n) if shape is None else (n, *shape)), **options)


@DISPLAYS
def test_refusals(display, shape):
    with pytest.raises(
        ValueError, match="names must have one entry per seller, 2. Got 1"
    ):
        display_of(display, shape, 2, names=["a"]).plot()


@DISPLAYS
def test_many_names_have_room(display, shape):
    display = display_of(display, shape, 30)
    display.plot().figure_.canvas.draw()
    boxes = [label.get_window_extent() for label in display.ax_.get_yticklabels()]
    middles = np.sort([(box.y0 + box.y1) / 2 for box in boxes])
    assert np.diff(middles).min() > 0.7 * max(box.height for box in boxes)
