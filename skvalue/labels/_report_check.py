"""A check of skore's reports: labels that are probably wrong."""

from sklearn.base import clone

from ..exceptions import ParameterError
from ..selection import capped_rows
from ._detector import LabelErrorDetector

# Rows that the explanation names; the others are in `rows_`.
_N_NAMED = 5


class LabelErrorCheck:
    """Doubtful labels, as a check of the reports of skore.

    It finds the rows that training is better without: another label is the most
    probable one by models that have not seen the row, and of each class not more rows
    than can be wrong, see :func:`skvalue.selection.capped_rows`. A report names the
    most doubtful of them, with the label that they should have. It looks at the
    training rows of an `EstimatorReport`, and at all rows of a `CrossValidationReport`.

    Parameters
    ----------
    detector : LabelErrorDetector, default=None
        Default is ``LabelErrorDetector(random_state=0)``.

    Attributes
    ----------
    rows_ : ndarray of int of shape (n_rows,)
        After a report was checked: places of the doubtful rows, most doubtful first.
    detector_ : LabelErrorDetector
        After a report was checked: the fitted detector.
    code, title, report_types, docs_url, severity, slow
        What skore asks of a check.

    See Also
    --------
    skvalue.LabelErrorDetector : The list of all rows, verdicts, and how many are wrong.

    Notes
    -----
    skore shows slow checks in `report.checks.summarize()`, not in fast mode.

    Examples
    --------
    >>> import skore  # doctest: +SKIP
    >>> from skvalue.labels import LabelErrorCheck
    >>> report = skore.evaluate(model, X, y)  # doctest: +SKIP
    >>> report.checks.add([LabelErrorCheck()])  # doctest: +SKIP
    >>> report.checks.summarize()  # doctest: +SKIP
    """

    code = "SKV001"
    title = "Doubtful labels"
    report_types = ["estimator", "cross-validation"]
    docs_url = None
    severity = "issue"
    slow = True

    def __init__(self, detector=None):
        self.detector = detector

    def check_function(self, report):
        """Return what skore shows of a report.

        Parameters
        ----------
        report : skore.EstimatorReport or skore.CrossValidationReport
            The report.

        Returns
        -------
        explanation : str or None
            None if no label is doubtful.

        Raises
        ------
        skore.CheckNotApplicable
            If the task is no classification with one target, or the report has no
            training rows.
        ValueError
            If the detector has values of a valuer, and no probabilities of labels.
        """
        from skore import CheckNotApplicable

        if report.ml_task not in {
            "binary-classification",
            "multiclass-classification",
        }:
            raise CheckNotApplicable(
                f"Labels are checked of a classification with one target. "
                f"Got {report.ml_task}."
            )
        X, y, name = _training_rows(report)
        if X is None or y is None:
            raise CheckNotApplicable("The report has no training rows.")

        detector = self.detector
        if detector is None:
            detector = LabelErrorDetector(random_state=0)
        self.detector_ = clone(detector).fit(X, y)
        try:
            rows = capped_rows(y, self.detector_.label_scores_)
        except ParameterError as error:
            raise ValueError(
                "detector must have an estimator of probabilities, which say how many "
                "labels of a class can be wrong: values say it of none. Got "
                f"{self.detector!r}."
            ) from error
        self.rows_ = rows[self.detector_.values_[rows].argsort(kind="stable")]
        if len(rows) == 0:
            return None
        return self._explain(name)

    def _explain(self, name):
        n_rows = len(self.detector_.values_)
        fraction = len(self.rows_) / n_rows
        are = "row is" if len(self.rows_) == 1 else "rows are"
        named = ", ".join(
            f"{row} ({self.detector_.suggested_label_[row]})"
            for row in self.rows_[:_N_NAMED]
        )
        return (
            f"The labels of {len(self.rows_)} of {n_rows} {name} {are} doubtful "
            f"({fraction:.1%}): models that have not seen the row expect another "
            "label. The most doubtful rows, counted from 0, and the expected labels: "
            f"{named}. Look at them, or train without them: "
            'ValueFilteredClassifier(model, LabelErrorDetector(), drop="auto").'
        )


def _training_rows(report):
    """Rows, labels, and what the explanation calls them."""
    if hasattr(report, "X_train"):
        return report.X_train, report.y_train, "training"
    return report.X, report.y, "checked"
