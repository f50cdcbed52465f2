"""Displays of sellers' summaries, in scikit-learn's Display convention."""

import numpy as np

from .._utils.plotting import BLUE, GREY, RED, open_axes

_MAX_LABELLED_SELLERS = 12  # with more, cells are too small for their numbers


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
        display = cls(**cls._compute(scorer, summaries), names=names)
        return display.plot(ax=ax)

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
        values = np.asarray(getattr(self, self._values_name), dtype=float)
        names = self._seller_names(len(values))
        # The columns of a square table are sellers, too.
        is_square = values.shape[1:] == values.shape[:1]
        n_columns = len(names) if is_square else 0
        ax = open_axes(ax, type(self).__name__, len(names), n_columns)
        self._draw(ax, values, names)
        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    def _seller_names(self, n_sellers):
        """The names, which are numbers by default."""
        if self.names is None:
            return [f"seller {i + 1}" for i in range(n_sellers)]
        names = list(map(str, self.names))
        if len(names) != n_sellers:
            raise ValueError(
                f"names must have one entry per seller, {n_sellers}. Got {len(names)}."
            )
        return names

    def _draw_map(self, ax, rows, label, **style):
        """Draw a heat map of rows (n_sellers, n_columns) with a colour bar."""
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

    _values_name = "scores"

    def __init__(self, scores, *, errors=None, floors=None, names=None):
        self.scores = scores
        self.errors = errors
        self.floors = floors
        self.names = names

    @staticmethod
    def _compute(scorer, summaries):
        return {
            "scores": scorer.score_summaries(summaries)[:, 0],
            "errors": scorer.score_errors(summaries),
            "floors": scorer.noise_floor(summaries),
        }

    def _draw(self, ax, scores, names):
        positions = np.arange(len(scores))
        floors = np.full(len(scores), -np.inf)
        if self.floors is not None:
            floors = np.asarray(self.floors)
        self.bars_ = ax.barh(
            positions,
            scores,
            xerr=self.errors,
            color=np.where(scores > floors, BLUE, GREY),
            error_kw={"ecolor": "black", "capsize": 3, "lw": 1},
        )
        self.floors_ = None
        if self.floors is not None:
            self.floors_ = ax.scatter(
                floors,
                positions,
                marker="|",
                s=350,
                color=RED,
                linewidths=2,
                label="noise floor: scores to its left are not significant",
                zorder=3,
            )
            ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), frameon=False)
        ax.set(
            yticks=positions,
            yticklabels=names,
            xlabel="distance from the buyer's data",
        )
        ax.invert_yaxis()
        ax.set_xlim(left=0)


class PairwiseDistancesDisplay(_MarketDisplay):
    """Heat map of distances between sellers.

    Dark cells off the diagonal are near-duplicates.

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
    >>> display = PairwiseDistancesDisplay([[0.0, 1.0], [1.0, 0.0]]).plot()
    >>> display.image_.get_array().shape
    (2, 2)
    """

    _values_name = "distances"

    def __init__(self, distances, *, names=None):
        self.distances = distances
        self.names = names

    @staticmethod
    def _compute(scorer, summaries):
        return {"distances": scorer.pairwise_distances(summaries)}

    def _draw(self, ax, distances, names):
        self._draw_map(ax, distances, "distance", cmap="cividis")
        if len(distances) <= _MAX_LABELLED_SELLERS:
            middle = distances.max(initial=0.0) / 2
            for (i, j), distance in np.ndenumerate(distances):
                ax.text(
                    j,
                    i,
                    f"{distance:.2g}",
                    ha="center",
                    va="center",
                    color="black" if distance > middle else "white",
                    size=8,
                )
        positions = np.arange(len(distances))
        ax.set(xticks=positions, yticks=positions, yticklabels=names)
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
    >>> display = DirectionsDisplay([[[9.0, 0.0], [0.0, 1.0]]]).plot()
    >>> display.image_.get_array().shape
    (1, 4)
    """

    _values_name = "contributions"

    def __init__(self, contributions, *, names=None):
        self.contributions = contributions
        self.names = names

    @staticmethod
    def _compute(scorer, summaries):
        return {"contributions": scorer.explain(summaries)}

    def _draw(self, ax, contributions, names):
        n_sellers, _, d = contributions.shape
        rows = contributions.reshape(n_sellers, 2 * d)
        self._draw_map(
            ax, rows, "part of the squared distance", cmap="Blues", aspect="auto"
        )
        ax.axvline(d - 0.5, color="black", lw=1)

        # The directions have their numbers in both halves.
        ticks = np.arange(0, d, max(1, d // 8))
        labels = ticks + 1
        ax.set_xticks(np.concatenate([ticks, d + ticks]), [*labels, *labels])
        ax.set(yticks=np.arange(n_sellers), yticklabels=names)
        ax.set_xlabel(
            "the buyer's principal direction: shift of the mean | change of covariance"
        )
