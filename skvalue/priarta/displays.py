"""Displays of sellers' summaries, in scikit-learn's Display convention."""

import numpy as np

from .._utils.plotting import BLUE, GREY, RED, open_axes


def _names(names, n):
    names = (
        [f"seller {i + 1}" for i in range(n)]
        if names is None
        else list(map(str, names))
    )
    if len(names) != n:
        raise ValueError(
            f"names must have one entry per seller, {n}. Got {len(names)}."
        )
    return names


class _MarketDisplay:
    """Base class of displays of sellers."""

    @classmethod
    def from_summaries(cls, scorer, summaries, *, names=None, ax=None):
        """Compute the display from summaries, and plot it.

        Parameters
        ----------
        scorer : PriArTaScorer
            The fitted scorer.
        summaries : sequence of Summary, str or path-like
            Summaries of the sellers, or paths to their files.
        names : sequence of str, default=None
            Names of the sellers.
        ax : matplotlib Axes, default=None
            Axes to plot on; if None, a new figure is created.

        Returns
        -------
        display : object of this class
            The display, plotted.
        """
        return cls(**cls._facts_of(scorer, summaries), names=names).plot(ax=ax)

    def plot(self, ax=None):
        """Plot the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on; if None, a new figure is created.

        Returns
        -------
        display : object of this class
            The display, plotted.

        Raises
        ------
        ValueError
            If there are not as many names as sellers.
        ImportError
            If matplotlib is not installed.
        """
        shown = np.asarray(getattr(self, self._shown), dtype=float)
        names = _names(self.names, len(shown))
        columns = (
            len(names) if shown.shape[1:] == shown.shape[:1] else 0
        )  # also sellers
        ax = open_axes(ax, type(self).__name__, len(names), columns)
        self._draw(ax, shown, names)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_map(self, ax, rows, label, **style):
        self.image_ = ax.imshow(rows, vmin=0, **style)
        ax.figure.colorbar(self.image_, ax=ax, label=label)


class SellerScoresDisplay(_MarketDisplay):
    """Bar chart of scores of sellers, with standard errors and noise floors.

    Use `from_summaries` to create it.

    Parameters
    ----------
    scores : array-like of shape (n_sellers,)
        Scores of the sellers.
    errors : array-like of shape (n_sellers,), default=None
        Standard errors of the scores.
    floors : array-like of shape (n_sellers,), default=None
        Noise floors of the sellers.
    names : sequence of str, default=None
        Names of the sellers.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    bars_ : matplotlib BarContainer
        One bar per seller; grey if the score is below its noise floor.
    floors_ : matplotlib PathCollection
        Markers of the noise floors, or None.

    See Also
    --------
    skvalue.PriArTaScorer.noise_floor : Computes the noise floors.

    Examples
    --------
    >>> from skvalue.priarta import SellerScoresDisplay
    >>> len(SellerScoresDisplay([0.1, 0.4], floors=[0.2, 0.2]).plot().bars_)
    2
    """

    _shown = "scores"

    def __init__(self, scores, *, errors=None, floors=None, names=None):
        self.scores = scores
        self.errors = errors
        self.floors = floors
        self.names = names

    @staticmethod
    def _facts_of(scorer, summaries):
        return {
            "scores": scorer.score_summaries(summaries)[:, 0],
            "errors": scorer.score_errors(summaries),
            "floors": scorer.noise_floor(summaries),
        }

    def _draw(self, ax, scores, names):
        places = np.arange(len(scores))
        low = (
            np.full(len(scores), -np.inf)
            if self.floors is None
            else np.asarray(self.floors)
        )
        colours = np.where(scores > low, BLUE, GREY)
        style = dict(error_kw=dict(ecolor="black", capsize=3, lw=1))
        self.bars_ = ax.barh(places, scores, xerr=self.errors, color=colours, **style)
        self.floors_ = None
        if self.floors is not None:
            label = "noise floor: scores to its left are not significant"
            self.floors_ = ax.scatter(
                low,
                places,
                marker="|",
                s=350,
                color=RED,
                linewidths=2,
                label=label,
                zorder=3,
            )
            ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), frameon=False)
        ax.set(
            yticks=places, yticklabels=names, xlabel="distance from the buyer's data"
        )
        ax.invert_yaxis()
        ax.set_xlim(left=0)


class PairwiseDistancesDisplay(_MarketDisplay):
    """Heat map of distances between sellers; dark cells off the diagonal are
    near-duplicates.

    Use `from_summaries` to create it.

    Parameters
    ----------
    distances : array-like of shape (n_sellers, n_sellers)
        Pairwise distances.
    names : sequence of str, default=None
        Names of the sellers.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    image_ : matplotlib AxesImage
        The heat map.

    See Also
    --------
    skvalue.PriArTaScorer.pairwise_distances : Computes the distances.

    Examples
    --------
    >>> from skvalue.priarta import PairwiseDistancesDisplay
    >>> PairwiseDistancesDisplay([[0.0, 1.0], [1.0, 0.0]]).plot().image_.get_array().shape
    (2, 2)
    """

    _shown = "distances"

    def __init__(self, distances, *, names=None):
        self.distances = distances
        self.names = names

    @staticmethod
    def _facts_of(scorer, summaries):
        return {"distances": scorer.pairwise_distances(summaries)}

    def _draw(self, ax, distances, names):
        places = np.arange(len(distances))
        self._draw_map(ax, distances, "distance", cmap="cividis")
        middle = distances.max(initial=0.0) / 2
        if len(distances) <= 12:
            for (i, j), distance in np.ndenumerate(distances):
                colour = "black" if distance > middle else "white"
                ax.text(
                    j,
                    i,
                    f"{distance:.2g}",
                    ha="center",
                    va="center",
                    color=colour,
                    size=8,
                )
        ax.set(xticks=places, yticks=places, yticklabels=names)
        ax.set_xticklabels(names, rotation=45, ha="right", rotation_mode="anchor")


class DirectionsDisplay(_MarketDisplay):
    """Heat map of squared distances by direction, for the mean and the covariance.

    Use `from_summaries` to create it.

    Parameters
    ----------
    contributions : array-like of shape (n_sellers, 2, n_dimensions)
        Contributions as returned by `PriArTaScorer.explain`.
    names : sequence of str, default=None
        Names of the sellers.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    image_ : matplotlib AxesImage
        The heat map, with one row per seller; the directions are shown twice, for the
        shift of the mean and for the change of the covariance.

    See Also
    --------
    skvalue.PriArTaScorer.explain : Computes the contributions.

    Examples
    --------
    >>> from skvalue.priarta import DirectionsDisplay
    >>> DirectionsDisplay([[[9.0, 0.0], [0.0, 1.0]]]).plot().image_.get_array().shape
    (1, 4)
    """

    _shown = "contributions"

    def __init__(self, contributions, *, names=None):
        self.contributions = contributions
        self.names = names

    @staticmethod
    def _facts_of(scorer, summaries):
        return {"contributions": scorer.explain(summaries)}

    def _draw(self, ax, contributions, names):
        n, _, d = contributions.shape
        rows = contributions.reshape(n, 2 * d)
        self._draw_map(
            ax, rows, "part of the squared distance", cmap="Blues", aspect="auto"
        )
        ax.axvline(d - 0.5, color="black", lw=1)
        ticks = np.arange(0, d, max(1, d // 8))
        ax.set_xticks(np.concatenate([ticks, d + ticks]), [*(ticks + 1), *(ticks + 1)])
        ax.set(yticks=np.arange(n), yticklabels=names)
        ax.set_xlabel(
            "the buyer's principal direction: shift of the mean | change of covariance"
        )
