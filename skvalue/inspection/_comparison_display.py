"""Display of a comparison of valuers."""

from .._utils.plotting import GREY, open_axes
from ._compare import compare
from ._displays import ValueRemovalDisplay


class ComparisonDisplay:
    """Removal curves of several valuers, and the wrong labels that each finds.

    Parameters
    ----------
    comparison : Bunch
        Result of `compare`.
    score_name : str, default="score"
        Label of the vertical axis of the removal curves.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        Axes of the removal curves, and of the wrong labels found if they are known.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    lines_ : dict of str to list of matplotlib Line2D
        Lines of each valuer.

    See Also
    --------
    compare : Fit and compare.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skvalue import DataOOBValuer, KNNShapleyValuer
    >>> from skvalue.datasets import flip_labels
    >>> from skvalue.inspection import ComparisonDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> labels, flipped = flip_labels(y[::2], 0.1, random_state=0)
    >>> display = ComparisonDisplay.from_valuers(
    ...     {"KNN-Shapley": KNNShapleyValuer(), "Data-OOB": DataOOBValuer(random_state=0)},
    ...     X[::2], labels, X_val=X[1::2], y_val=y[1::2], wrong=flipped,
    ...     estimator=GaussianNB(), n_repeats=1, random_state=0,
    ... )
    >>> list(display.lines_), len(display.axes_)
    (['KNN-Shapley', 'Data-OOB'], 2)
    """

    def __init__(self, comparison, *, score_name="score"):
        self.comparison = comparison
        self.score_name = score_name

    @classmethod
    def from_valuers(cls, valuers, X, y, *, score_name=None, axes=None, **options):
        """Fit several valuers and draw their curves.

        Parameters
        ----------
        valuers, X, y : required
            As in `compare`.
        score_name : str, default=None
            Label of the vertical axis; None means `scoring` if it is a string, else "score".
        axes : list of matplotlib Axes, default=None
            Axes to draw on; None creates a new figure.
        **options : dict
            Further arguments of `compare`.

        Returns
        -------
        display : ComparisonDisplay
            The drawn display.
        """
        scoring = options.get("scoring")
        if score_name is None:
            score_name = scoring if isinstance(scoring, str) else "score"
        return cls(compare(valuers, X, y, **options), score_name=score_name).plot(axes)

    def plot(self, axes=None):
        """Draw the display.

        Parameters
        ----------
        axes : list of matplotlib Axes, default=None
            Axes to draw on, one without known wrong labels, else two; None creates a new figure.

        Returns
        -------
        display : ComparisonDisplay
            The display itself.

        Raises
        ------
        ValueError
            If there are too few axes.
        """
        detection = self.comparison.detection
        n_axes = 1 if detection is None else 2
        if axes is None:
            figure = open_axes(None, type(self).__name__).figure
            figure.clear()
            figure.set_size_inches(5.5 * n_axes, 4.4)
            axes = [figure.add_subplot(1, n_axes, place + 1) for place in range(n_axes)]
        if len(axes) < n_axes:
            raise ValueError(f"axes must have {n_axes} entries. Got {len(axes)}.")
        removal = self.comparison.removal
        left = ValueRemovalDisplay.from_curves(removal, score_name=self.score_name, ax=axes[0])
        self.lines_ = {name: [line] for name, line in zip(removal, left.lines_)}
        if detection is not None:
            right = open_axes(axes[1], type(self).__name__)
            for name, curve in detection.items():
                label = f"{name} (AUROC {curve.auc:.2f})"
                color = self.lines_[name][0].get_color()
                self.lines_[name] += right.plot(
                    curve.inspected, curve.found, label=label, color=color
                )
            right.plot([0, 1], [0, 1], color=GREY, linestyle="--", label="at random")
            right.set(xlabel="fraction of rows inspected, lowest value first")
            right.set(ylabel="fraction of wrong labels found")
            right.legend(frameon=False)
        self.axes_, self.figure_ = list(axes[:n_axes]), axes[0].figure
        return self
