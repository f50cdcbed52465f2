"""Whether values are adjusted by control variates, and by which functions of the rows."""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch

from ..._utils.columns import column_encoder
from ..._utils.parallel import one_thread
from ...estimation import FEWEST, Adjustment
from ...estimation.controls import KINDS, make_controls, ranked_rows, standard_components

_POINTS = 100  # validation points of the "neighbors" features
_COMPONENTS = 14  # of sparse rows
_ENTRIES = 50_000_000  # most entries of an encoded frame
# Solvers whose games no surrogate explains in the time it takes, except for Banzhaf values.
_FAST = ("nearest centroid", "naive Bayes")
_LARGEST_RATIO = 0.95  # of errors, for "auto": else values stay as they are


def refuse_unadjusted(sampler, n_coalitions):
    """Raise ValueError if values cannot be adjusted, for adjust=True.

    ``n_coalitions`` is the number of coalitions of each split, None if it is not known before.
    """
    if sampler not in ("stratified", "subsets"):
        raise ValueError(
            "adjust=True needs random subsets: sampler='stratified' or 'subsets'. Got "
            f"sampler={sampler!r}."
        )
    if n_coalitions is not None and n_coalitions < FEWEST:
        raise ValueError(
            f"adjust=True needs at least {FEWEST} coalitions besides that of all rows, in each "
            f"split. Got {n_coalitions}: increase max_evaluations or decrease the number of splits."
        )


def choose_adjustment(adjust, sampler, n_coalitions, solver, rows):
    """How the values of a design are adjusted, or None if they are not.

    No rule looks at a clock, so that the same call has the same values on any machine.
    """
    asked = bool(adjust) and not isinstance(adjust, str)
    if asked:
        refuse_unadjusted(sampler, n_coalitions)
    few = n_coalitions is not None and n_coalitions < FEWEST
    if not adjust or few or sampler not in ("stratified", "subsets"):
        return None
    kinds = set(KINDS)
    if sampler == "subsets":  # near n/2 rows, soft nearest neighbours hardly vary
        kinds -= {"neighbors"}
    if asked:
        return Adjustment(rows, _ordered(kinds))
    if solver != "loop":
        if sampler != "subsets" and solver.split(" (torch")[0] in _FAST:
            return None
        kinds -= set() if sampler == "subsets" else {"additive"}
    return Adjustment(rows, _ordered(kinds), _LARGEST_RATIO)


def _ordered(kinds):
    return tuple(kind for kind in KINDS if kind in kinds)


@dataclass(frozen=True, eq=False)
class ControlRows:
    """Makes the control variates of a split from its rows and validation points."""

    problem: object
    number: int  # of the split

    def __deepcopy__(self, memo):
        return self  # the rows do not change

    def __call__(self, strata, kinds):
        """The `Controls` of some kinds; those that need numbers only where X has them."""
        problem, split = self.problem, self.problem.splits[self.number]
        (X, y), points, n_classes = problem.rows(split), split.points, problem.n_classes
        groups = None
        if problem.groups is not None:
            groups = np.unique(problem.groups[problem.row_numbers(split)], return_inverse=True)[1]
        options = {"groups": groups, "kinds": kinds}
        if n_classes:
            weights = np.bincount(points.y, points.weights, minlength=n_classes)
            options |= {"codes": y, "class_weights": weights}
        else:
            options["targets"] = np.asarray(y, dtype=np.float64)
        if set(kinds) & {"quadratic", "neighbors"}:
            with one_thread():
                rows, rows_val = _numbers(X, points.X)
                if rows is not None:
                    options["components"] = standard_components(rows, random_state=0)
                    if groups is None and "neighbors" in kinds:
                        some = np.random.default_rng(0).permutation(len(points))[:_POINTS]
                        options["points"] = ranked_rows(
                            rows, y, rows_val[some], points.y[some], not n_classes
                        )
                else:
                    options["kinds"] = [k for k in kinds if k not in ("quadratic", "neighbors")]
        return make_controls(strata, **options)


def _numbers(X, X_val):
    """Standardised columns of rows and validation points; None and None where there are none."""
    try:
        with warnings.catch_warnings():  # of unknown categories, and of overflow
            warnings.simplefilter("ignore")
            rows, rows_val = _encoded(X, X_val)
            scaler = StandardScaler().fit(rows)
            rows, rows_val = scaler.transform(rows), scaler.transform(rows_val)
    except Exception:  # texts, objects, frames of other libraries: the estimator takes any of them
        return None, None
    finite = np.isfinite(rows).all() and np.isfinite(rows_val).all()
    return (rows, rows_val) if finite else (None, None)


def _encoded(X, X_val):
    """Rows and validation points as arrays of numbers; raises an error where there are none."""
    if sparse.issparse(X):
        encoder = TruncatedSVD(min(_COMPONENTS, min(X.shape) - 1), random_state=0)
    elif hasattr(X, "columns"):
        encoder = column_encoder(X, _ENTRIES)[0]
    else:
        X, X_val = (np.asarray(x, dtype=np.float64).reshape(len(x), -1) for x in (X, X_val))
        if np.isfinite(X).all() and np.isfinite(X_val).all():
            return X, X_val
        encoder = SimpleImputer(strategy="median", keep_empty_features=True)
    return encoder.fit_transform(X), encoder.transform(X_val)


def adjustment_of(run):
    """The attribute `adjustment_` of a run."""
    designs = [run.designs[i] for i in run.valued]
    fits = [design.adjusted for design in designs]
    used = [design.is_adjusted for design in designs]
    variances = np.array([design.variances()[0].sum() for design in designs])
    ratios = np.array([fit.ratio if use else 1.0 for fit, use in zip(fits, used)])
    ratio = 1.0
    if any(used) and (ratios > 0).all() and 0 < variances.sum() < np.inf:
        ratio = float(np.sqrt(variances.sum() / (variances / ratios**2).sum()))
    found = [fit.r2 for fit in fits if fit is not None]
    r2 = None
    if found:  # splits of unequal sizes may have unequal numbers of strata
        r2 = np.full((len(found), max(map(len, found))), np.nan)
        for row, of_split in zip(r2, found):
            row[: len(of_split)] = of_split
        r2 = np.nanmean(r2, axis=0)
    saved = round(run.n_evaluations * (1 / ratio**2 - 1))
    return Bunch(used=any(used), r2=r2, error_ratio=ratio, n_fits_saved=saved)
