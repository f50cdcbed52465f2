"""Display of the linear datamodeling score; matplotlib is imported only to draw."""

import numpy as np

from .._utils.plotting import BLUE, open_axes


class LinearDatamodelingDisplay:
    """Predicted against actual changes of the utility, as rows are removed.

    For values of each validation point: histogram of the scores of the points.

    Parameters
    ----------
    result : Bunch
        Result of `linear_datamodeling_score`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    points_ : matplotlib PathCollection
        One point per subset; None for values of each validation point.
    bars_ : matplotlib BarContainer
        Histogram of the scores; None for values of the whole validation set.
    mean_line_ : matplotlib Line2D
        Vertical line at the mean of the scores; None like the bars.

    See Also
    --------
    linear_datamodeling_score : Compute the score.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.utils import Bunch
    >>> from skvalue.inspection import LinearDatamodelingDisplay
    >>> result = Bunch(
    ...     score=1.0, score_error=0.0, scores=np.ones(1), predicted=np.array([[0.1, 0.2, 0.3]]),
    ...     changes=np.array([[0.1, 0.4, 0.5]]),
    ... )
    >>> LinearDatamodelingDisplay(result).plot().ax_.get_title()
    'LDS = 1.00 ± 0.00'
    """

    def __init__(self, result):
        self.result = result

    def plot(self, ax=None, *, bins=20):
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a new figure.
        bins : int, default=20
            Number of bins of the histogram.

        Returns
        -------
        display : LinearDatamodelingDisplay
            The display itself.
        """
        ax, result = open_axes(ax, type(self).__name__), self.result
        self.points_ = self.bars_ = self.mean_line_ = None
        if len(result.scores) == 1:
            self.points_ = ax.scatter(result.predicted[0], result.changes[0], s=16, color=BLUE)
            ax.set(xlabel="sum of the values of the removed rows", ylabel="decrease of the utility")
        else:
            edges = np.linspace(min(0.0, result.scores.min()), 1.0, bins + 1)
            *_, self.bars_ = ax.hist(result.scores, edges, color=BLUE, alpha=0.7)
            self.mean_line_ = ax.axvline(result.score, color="0.2", linewidth=1.2)
            ax.set(xlabel="rank correlation at a validation point", ylabel="validation points")
        ax.set_title(f"LDS = {result.score:.2f} ± {result.score_error:.2f}")
        self.ax_, self.figure_ = ax, ax.figure
        return self
