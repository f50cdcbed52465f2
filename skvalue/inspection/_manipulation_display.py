"""Display of the gains by manipulation; matplotlib is imported only to draw."""

import numpy as np

from .._utils.plotting import open_axes


class ManipulationDisplay:
    """Gains by manipulation: a line per manipulation, a column per rule of payment.

    Each cell has the gain in %, in bold on a colour where it is proved to be above 0.

    Parameters
    ----------
    results : Bunch or dict of str to Bunch
        Results of `manipulation_gain`. Several, by the name of the rule, must have the same
        manipulations.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the plot.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    image_ : matplotlib AxesImage
        The coloured cells.
    text_ : ndarray of matplotlib Text of shape (n_attacks, n_rules)
        The gains.

    See Also
    --------
    manipulation_gain : Computes the gains.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.utils import Bunch
    >>> from skvalue.inspection import ManipulationDisplay
    >>> result = Bunch(
    ...     attack=["rows 4 times", "half withheld"], gain=np.array([1.4, -0.5]),
    ...     proved=np.array([True, False]),
    ... )
    >>> display = ManipulationDisplay({"KNN-Shapley": result}).plot()
    >>> [text.get_text() for text in display.text_[:, 0]]
    ['+140', '-50']
    """

    def __init__(self, results):
        self.results = results

    def plot(self, ax=None):
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a new figure.

        Returns
        -------
        display : ManipulationDisplay
            The display itself.

        Raises
        ------
        ValueError
            If results have different manipulations.
        """
        results = self.results
        if hasattr(results, "gain"):
            results = {"": results}
        attacks = list(next(iter(results.values())).attack)
        if any(list(result.attack) != attacks for result in results.values()):
            raise ValueError("results must have the same manipulations.")
        gains = np.round([100 * result.gain for result in results.values()]).T + 0.0  # no -0
        proved = np.array([result.proved for result in results.values()]).T
        ax = open_axes(ax, type(self).__name__, 1.6 * len(attacks), 8 * len(results))
        ax.spines[:].set_visible(False)
        shown = np.where(proved | (gains < 0), gains, 0.0)
        self.image_ = ax.imshow(shown, cmap="RdBu_r", vmin=-200, vmax=200, aspect="auto")
        self.text_ = np.array([
            [
                ax.text(j, i, f"{gains[i, j]:+.0f}", ha="center", va="center",
                        weight="bold" if proved[i, j] else "normal",
                        color="white" if abs(gains[i, j]) > 150 else "black")
                for j in range(len(results))
            ]
            for i in range(len(attacks))
        ])  # fmt: skip
        ax.set_yticks(range(len(attacks)), attacks)
        ax.set_xticks(range(len(results)), results)
        ax.tick_params(length=0)
        ax.xaxis.tick_top()
        ax.set_title("gain of a party, %")
        self.ax_, self.figure_ = ax, ax.figure
        return self
