"""Private fits: what they ask for, what they keep, and what they refuse."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .._utils.checks import check_groups, check_task, check_validation_weights
from .._utils.sklearn import StrOptions
from ..privacy import Ledger, check_delta, check_epsilon
from ._old_judges import Judges, Progress

# Constraints of the parameters that every private valuer has.
PRIVACY_CONSTRAINTS = {
    "epsilon": [Real, None],
    "delta": [Real],
    "relation": [StrOptions({"null", "add_remove", "replace"})],
    "reader": [StrOptions({"curator"}), None],
    "ledger": [Ledger, None],
    "noise_random_state": [Integral, None],
}

# What only the curator may see: it stays in the process that fitted, and out of notebooks.
_CURATOR = ("values_", "_row_values", "_groups", "groups_")


def public_classes(y_val):
    """Return the sorted classes of the validation labels, and their codes.

    Raises ValueError where they are no classes, or one class.
    """
    y_val = column_or_1d(y_val, warn=True)
    if check_task("auto", y_val, "y_val") != "classification":
        raise ValueError("Unknown label type: y_val must hold classes. Got continuous values.")
    classes, codes = np.unique(y_val, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            "y_val must have at least 2 classes: a private fit takes the list of classes from it, "
            f"since the labels of the rows are private. Got one class: {classes.tolist()[0]!r}."
        )
    return classes, codes


def codes_or_other(y, classes):
    """Codes of labels; the code of any label that is not among the classes is their number.

    Examples
    --------
    >>> codes_or_other(np.array(["b", "z", "a"]), np.array(["a", "b"])).tolist()
    [1, 2, 0]
    """
    y = column_or_1d(y)
    kinds = [("n" if part.dtype.kind in "biuf" else part.dtype.kind) for part in (y, classes)]
    if kinds[0] == kinds[1] != "O":
        codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        codes = np.where(classes[codes] == y, codes, len(classes))
    else:
        known = {label: code for code, label in enumerate(classes.tolist())}
        codes = np.array([known.get(label, len(classes)) for label in y.tolist()])
    return codes.astype(np.min_scalar_type(len(classes)))


class Unfollowed:
    """What stands in for `Progress` inside a release, which is one step to the outside."""

    def follow(self, parts, n_parts):
        """Yield the parts."""
        return parts


class PrivateFitsMixin:
    """Private fits of valuers that have the parameters of `PRIVACY_CONSTRAINTS`.

    A method writes `_release` and `_score_released`; its fitted attribute `privacy_` says that the
    last fit was private.
    """

    _curator = _CURATOR  # what pickles and displays of a private fit lack

    def _release(self, X, y, judges, n_classes):
        """Release what the values are computed from, set `privacy_`, and value the rows.

        Parameters
        ----------
        X, y : ndarrays
            The rows, and codes of their classes; ``n_classes`` is any other label.
        judges : Judges
            The public validation points.
        n_classes : int
            Number of classes of the validation points.

        Returns
        -------
        values : ndarray of shape (n_players,)
            Sums over the judges of weight times value.
        utility, empty_utility : float
            What the release says of the utility of all rows; that of none.
        """
        raise NotImplementedError

    def _score_released(self, X, y):
        """Values of rows (labels: codes, or None), each as one that joins those of fit."""
        raise NotImplementedError

    # What a user calls ----------------------------------------------------------------------

    def values_for(self, i):
        """Value of one row, as its owner may see it.

        After a private fit it protects all other rows, also when their owners pool what they see
        (joint differential privacy); the row's own record is not hidden from its own owner.

        Parameters
        ----------
        i : int
            Position of the row in the X of fit, or of the group in `groups_`.

        Returns
        -------
        value : float
            The value.

        Raises
        ------
        ValueError
            If there is no row, or group, i.
        AttributeError
            If the valuer was fitted privately and pickled since: values are not pickled.
        """
        check_is_fitted(self)
        n = len(self.values_)
        if not -n <= i < n:
            raise ValueError(f"i must be between 0 and {n - 1}. Got {i}.")
        return float(self.values_[i])

    # Plumbing -------------------------------------------------------------------------------

    def _wants_privacy(self):
        return getattr(self, "epsilon", None) is not None

    def _fitted_privately(self):
        return "privacy_" in self.__dict__

    def _refuse_if_private(self, what, error=ValueError):
        if self._fitted_privately():
            raise error(
                f"{what} needs the rows of fit, which a private fit does not keep. Fit again (a "
                "release of its own), or fit with epsilon=None where no privacy is needed."
            )

    def _refuse_reader(self):
        if self._wants_privacy() and getattr(self, "reader", None) != "curator":
            raise ValueError(
                "reader must be 'curator' for fit_transform with epsilon: the values of all rows "
                "side by side tell their reader about every row. Use fit and values_for(i) for "
                "owners, or pass reader='curator' if the reader holds the rows anyway. Got "
                f"reader={getattr(self, 'reader', None)!r}."
            )

    def _fit_private(self, X, y, X_val, y_val, groups, sample_weight_val):
        """Fit on checked X and X_val, and keep neither rows nor anything clean.

        Returns the progress, for `_finish`.
        """
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        if X_val is None:
            raise ValueError(
                "X_val and y_val must be passed with epsilon: a private fit needs public "
                "validation points to judge the rows. They are NOT protected, so take none of the "
                "private rows. Got no X_val."
            )
        group_names, group_codes = check_groups(groups, len(X))
        classes, codes_val = public_classes(y_val)
        weights = check_validation_weights(sample_weight_val, len(X_val))
        if len(y) != len(X):
            raise ValueError(f"y must have one entry a row of X ({len(X)}). Got {len(y)}.")
        codes = codes_or_other(y, classes)
        judges = Judges(X_val, codes_val, weights, np.arange(len(X_val)))
        n_classes = self._n_classes = len(classes)
        self._groups = group_codes
        self._prepare(X_val, codes_val)
        progress = Progress(self, 1)
        release = (self._release(X, codes, judges, n_classes) for _ in range(1))
        done = list(progress.follow(release, 1))
        if not done:
            raise KeyboardInterrupt
        values, self.utility_, self.empty_utility_ = done[0]
        self.classes_ = classes
        self.__dict__.pop("groups_", None)
        if group_names is not None:
            self.groups_ = group_names
        self._set_values(values)
        self._judge_weights = sample_weight_val
        self._X = self._y = self._seen = None
        self._games, self._share, self._explicit, self._lazy = [(None, judges)], 1.0, True, {}
        self._n_features_out = 1
        return progress

    def __getstate__(self):
        state = super().__getstate__()
        if "privacy_" not in state:
            return state
        state = {name: value for name, value in state.items() if name not in self._curator}
        # A seed would take the noise off again. (There is none, but in tests.)
        return {**state, "_lazy": {}, "noise_random_state": None}

    def _get_fitted_attr_html(self, *args, **options):
        """What scikit-learn shows of a fitted estimator, which a notebook keeps."""
        shown = super()._get_fitted_attr_html(*args, **options)
        for name in self._curator if self._fitted_privately() else ():
            shown.pop(name, None)
        return shown

    def __getattr__(self, name):
        if name in ("values_", "groups_") and "privacy_" in self.__dict__:
            raise AttributeError(
                f"{name} of a private fit is for the curator: it is not pickled, nor is it there "
                "without its rows. score_samples(X, y) values rows from what was released."
                if name == "values_"
                else "groups_ of a private fit is for the curator, and is not pickled."
            )
        return object.__getattribute__(self, name)  # a property's own message, or the usual one
