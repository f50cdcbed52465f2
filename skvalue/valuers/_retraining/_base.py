"""Base class of valuers that train an estimator: a `fit` with sample weights."""

from ..._utils.checks import task_of
from ..._utils.fits import by_name
from ..._utils.sklearn import fit_context
from ...base import BaseInSampleValuer, Takes, follow_input_tags, make_problem
from ...games import has_solver


def takes_of(valuer, part, any_rows=True, **options):
    """What a valuer takes that leaves X to its estimator; without one, the task is that of y."""
    named = valuer.estimator is not None and not has_solver(valuer.estimator)
    return Takes(
        targets=("classification", "regression"), task=task_of(valuer.task, valuer.estimator),
        any_rows=any_rows, names=named, part=part, **options,
    )  # fmt: skip


class BaseRetrainingValuer(BaseInSampleValuer):
    """Base class of valuers that train an estimator, whose `fit` takes `sample_weight`."""

    _default_estimator = None  # for classes; used if none is passed

    def __sklearn_tags__(self):
        estimator = self._default_estimator if self.estimator is None else self.estimator
        return follow_input_tags(super().__sklearn_tags__(), estimator)

    @fit_context(prefer_skip_nested_validation=True)
    @by_name
    def fit(
        self,
        X,
        y,
        *late,
        X_val=None,
        y_val=None,
        groups=None,
        sample_weight=None,
        sample_weight_val=None,
    ):
        """Value the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to value, of any kind that the estimator takes and that can be indexed by
            rows: arrays, data frames, sparse matrices, lists of texts.
        y : array-like of shape (n_samples,)
            Their labels (numbers, booleans, strings, dates or categories), or targets where the
            method has a regression game.
        X_val : array-like of shape (n_validation, n_features), default=None
            Validation points, on which models are scored. Without them `cv` decides which rows
            are held out as validation points of the others.
        y_val : array-like of shape (n_validation,), default=None
            Labels of the validation points; passed together with `X_val`.
        groups : array-like of shape (n_samples,), default=None
            Group of every row; `values_` then has one entry per group.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in every fit of the estimator, whose `fit` must accept
            `sample_weight`. A row of weight zero is left out of all fits. Rows that `cv` holds out
            have equal weights as validation points.
        sample_weight_val : array-like of shape (n_validation,), default=None
            Weights of the validation points in the utility, which is their mean.

        Returns
        -------
        self : object
            The fitted valuer.

        Raises
        ------
        ValueError
            If the estimator cannot take X and X_val or be trained on all rows, X_val is of another
            kind than X or has other columns, y has one class, y_val has a label that y lacks, only
            one of X_val and y_val is passed or they are empty, groups or weights have a wrong
            length, the estimator accepts no weights, or rows are in the training sets of `cv`
            unequally often.

        Warns
        -----
        UnbatchedFitWarning
            If models are trained one by one only because of `class_weight`, or of the first steps
            of a pipeline.
        ManyClassesWarning
            If whole numbers with many values are taken for classes.
        """
        return self._solve(
            make_problem(
                self, X, y, X_val, y_val, late, groups=groups, sample_weight=sample_weight,
                sample_weight_val=sample_weight_val,
            )
        )  # fmt: skip
