"""What a party gains when it manipulates the rows that it sends."""

import inspect
from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.utils import (
    Bunch,
    check_array,
    check_consistent_length,
    check_random_state,
)

from .._utils.checks import check_names, one_column
from .._utils.plotting import open_axes
from .manipulations import ATTACKS, Submission

# Probability that any manipulation that does not pay is said to be proved.
_ERROR_RATE = 0.05

# A lower bound of a gain that is below this is a rounding error.
_ROUNDING = 1e-9


def manipulation_gain(
    valuer,
    X,
    y,
    groups,
    *,
    party,
    X_val=None,
    y_val=None,
    release=None,
    attacks: object = "default",
    pay="share",
    n_folds=10,
    n_repeats=3,
    random_state=None,
):
    """Measure what a party gains by manipulating the rows that it sends.

    Each manipulation is played on these rows with this valuer, and the party's payment
    compared with that for its honest rows. Gains are lower bounds of what a party can
    gain that looks for better manipulations.

    Parameters
    ----------
    valuer : valuer or scorer
        A valuer whose `fit` takes `groups`; a scorer of parties such as
        `PredictiveValueScorer`, with `release`; or a fitted `PriArTaScorer`, for which
        scores count as values. Only the last is not cloned.
    X : array-like of shape (n_samples, n_features)
        Rows of all parties, numbers.
    y : array-like of shape (n_samples,)
        Their labels or targets.
    groups : array-like of shape (n_samples,)
        Party of every row.
    party : label
        The party that manipulates, one of `groups`. It may have the rows of the next
        party.
    X_val : array-like of shape (n_validation, n_features), default=None
        Validation points, which the valuer needs. Without them, distances and noise
        have the scale of X, "also validation points" is left out, and errors are those
        over repeats only.
    y_val : array-like of shape (n_validation,), default=None
        Labels or targets of the validation points.
    release : estimator, default=None
        For scorers of parties: what each party fits on its rows, such as `GramRelease`,
        with the attribute `release_`. It is cloned.
    attacks : "default", sequence of str, or dict of str to callable, default="default"
        Names of manipulations, see `skvalue.inspection.manipulations`, or functions
        ``attack(submission, rng)``, where ``submission`` is a named tuple of X, y,
        names, X_val and y_val and ``rng`` a numpy Generator. They return another such
        tuple; in ``names`` the party is 0, or any negative number, and the others are
        1, 2, ...
    pay : {"share", "value"}, default="share"
        Payment: the share of a fixed budget, `skvalue.rewards.shares`, or a price per
        unit of value, `skvalue.rewards.payments`.
    n_folds : int, default=10
        Number of folds of validation points for standard errors, at least 2.
    n_repeats : int, default=3
        Number of repeats of each manipulation with other random numbers. The valuer is
        fitted ``(n_folds + n_repeats) * (n_attacks + 1)`` times.
    random_state : int, RandomState instance or None, default=None
        Controls manipulations and folds.

    Returns
    -------
    result : Bunch
        ``attack``, list of names. ``gain``, ndarray of shape (n_attacks,): payment over
        that for honest rows, less 1 (NaN if that is not above 0); ``gain_error``: its
        standard error. ``change`` and ``change_error``: the difference of the payments.
        ``proved``: mask of the manipulations that pay, by one-sided t tests at a
        confidence level of 95 % for all of them together (Bonferroni). ``honest``:
        payment for honest rows. ``worst``: index of the largest lower bound.
        ``sentence``: str. ``n_fits``: int.

    Raises
    ------
    ValueError
        If a parameter is outside its range, the party has no rows or is alone, or a
        name of a manipulation is unknown.

    See Also
    --------
    ManipulationDisplay : Draws results of one or several rules.
    twin_parties : Evidence that a party has copies of another's rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue import KNNShapleyValuer
    >>> from skvalue.inspection import manipulation_gain
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = X[:, 0] + 0.5 * rng.normal(size=300) > 0
    >>> result = manipulation_gain(
    ...     KNNShapleyValuer(),
    ...     X[:150],
    ...     y[:150],
    ...     np.arange(150) % 3,
    ...     party=0,
    ...     X_val=X[150:],
    ...     y_val=y[150:],
    ...     attacks=["rows 4 times", "20 % of labels wrong"],
    ...     random_state=0,
    ... )
    >>> result.proved.tolist(), bool(result.gain[0] > 0.5)
    ([True, False], True)
    """
    honest = _honest_submission(X, y, groups, party, X_val, y_val)
    attacks = _resolve_attacks(attacks, has_points=honest.y_val is not None)
    if pay not in ("share", "value"):
        raise ValueError(f"pay must be 'share' or 'value'. Got {pay!r}.")
    _check_integer("n_folds", n_folds, minimum=2)
    _check_integer("n_repeats", n_repeats, minimum=1)
    seed = int(check_random_state(random_state).randint(2**31))
    points_without_fold = _points_without_fold(honest, n_folds, seed)
    all_points = None
    if honest.y_val is not None:
        all_points = np.arange(len(honest.y_val))

    def payment(attack, repeat, points):
        # The party may see all validation points.
        submission = attack(honest, np.random.default_rng([seed, repeat]))
        names, values = _values_of_names(valuer, release, submission, points)
        return _payment(names, values, pay)

    # Payments for each manipulation, of which None is to send the honest rows: one
    # entry per repeat, and one per fold of validation points that is left out.
    plays = {None: lambda submission, rng: submission, **attacks}
    by_repeat = {}
    for name, play in plays.items():
        payments = [payment(play, repeat, all_points) for repeat in range(n_repeats)]
        by_repeat[name] = np.array(payments)
    by_fold = {}
    for name, play in plays.items():
        payments = [payment(play, 0, points) for points in points_without_fold]
        by_fold[name] = np.array(payments)

    # Differences to the honest payment of the same repeat, or of the same fold.
    honest_by_repeat = by_repeat.pop(None)
    honest_by_fold = by_fold.pop(None)

    # Bonferroni: the error rate is that of all manipulations together.
    level = 1 - _ERROR_RATE / len(attacks)
    changes = [
        _estimate(
            by_repeat[name] - honest_by_repeat, by_fold[name] - honest_by_fold, level
        )
        for name in attacks
    ]
    if min([*honest_by_repeat, *honest_by_fold]) > 0:
        gains = [
            _estimate(
                by_repeat[name] / honest_by_repeat - 1,
                by_fold[name] / honest_by_fold - 1,
                level,
            )
            for name in attacks
        ]
        bounds = np.array([gain.lower_bound for gain in gains])
    else:
        gains = [_Estimate(np.nan, np.nan, np.nan)] * len(attacks)
        bounds = np.array([change.lower_bound for change in changes])

    result = Bunch(
        attack=list(attacks),
        gain=np.array([gain.mean for gain in gains]),
        gain_error=np.array([gain.error for gain in gains]),
        change=np.array([change.mean for change in changes]),
        change_error=np.array([change.error for change in changes]),
        proved=bounds > _ROUNDING,
        honest=float(honest_by_repeat.mean()),
        worst=int(np.argmax(bounds)),
        n_fits=len(plays) * (n_repeats + len(points_without_fold)),
    )
    return Bunch(**result, sentence=_sentence(result, pay))


# What is asked for --------------------------------------------------------------------


def _honest_submission(X, y, groups, party, X_val, y_val):
    """The honest rows: the party is 0, the next one 1, and so on."""
    X = check_array(X, dtype=np.float64)
    y = one_column(y, "y")
    check_consistent_length(X, y, groups)
    names, codes = check_names(groups, "groups")
    if party not in names.tolist() or len(names) < 2:
        raise ValueError(
            f"party must be one of at least two groups, which are {names.tolist()}. "
            f"Got {party!r}."
        )
    codes = (codes - names.tolist().index(party)) % len(names)
    if (X_val is None) != (y_val is None):
        raise ValueError(
            "X_val and y_val must be passed together. Got only one of them."
        )
    if X_val is None:
        return Submission(X, y, codes, X, None)
    X_val = check_array(X_val, dtype=np.float64)
    y_val = one_column(y_val, "y_val")
    check_consistent_length(X_val, y_val)
    return Submission(X, y, codes, X_val, y_val)


def _resolve_attacks(attacks, has_points):
    """The manipulations to play: functions by name."""
    if isinstance(attacks, dict) and attacks and all(map(callable, attacks.values())):
        return attacks
    names = attacks
    if isinstance(attacks, str) and attacks == "default":
        names = list(ATTACKS)
    if isinstance(names, str) or not names or not set(names) <= set(ATTACKS):
        raise ValueError(
            "attacks must be 'default', names of manipulations, or a dict of "
            f"functions. Got {attacks!r}."
        )
    if not has_points:
        names = [name for name in names if "validation" not in name]
    return {name: ATTACKS[name] for name in names}


def _check_integer(name, number, minimum):
    if not isinstance(number, Integral) or number < minimum:
        raise ValueError(
            f"{name} must be an integer of at least {minimum}. Got {number!r}."
        )


def _points_without_fold(submission, n_folds, seed):
    """Indices of the validation points without those of each random fold."""
    if submission.y_val is None:
        return []
    rng = np.random.default_rng(seed)
    fold_of_point = rng.permutation(len(submission.y_val)) % n_folds
    return [np.flatnonzero(fold_of_point != fold) for fold in range(n_folds)]


# Payments -----------------------------------------------------------------------------


def _values_of_names(valuer, release, submission, points):
    """Names of the senders, and their values at the given validation points."""
    if hasattr(valuer, "score_summaries"):
        names = np.unique(submission.names)
        datasets = [submission.X[submission.names == name] for name in names]
        return names, valuer.transform(datasets)[:, 0]

    valuer = clone(valuer)
    validation = {}
    if points is not None:
        validation["X_val"] = submission.X_val[points]
        validation["y_val"] = submission.y_val[points]
    if release is None:
        valuer.fit(submission.X, submission.y, groups=submission.names, **validation)
        return valuer.groups_, valuer.values_

    releases = {}
    for name in np.unique(submission.names):
        is_sender = submission.names == name
        fitted = clone(release).fit(submission.X[is_sender], submission.y[is_sender])
        releases[int(name)] = fitted.release_
    if "X_val" not in inspect.signature(valuer.fit).parameters:
        validation = {}
    valuer.fit(releases, **validation)
    return np.array(valuer.parties_), valuer.values_


def _payment(names, values, pay):
    """What the party receives: its share of a budget, or the values of its names."""
    is_own = names <= 0  # 0 and its further names, see `Submission`
    if pay == "value":
        return values[is_own].sum()

    # Nobody pays: a share of the budget is at least 0, and 0 if nobody gets any.
    values = np.maximum(values, 0.0)
    return values[is_own].sum() / (values.sum() or 1.0)


class _Estimate(NamedTuple):
    """Mean over repeats, its standard error, and a lower confidence bound."""

    mean: float
    error: float
    lower_bound: float


def _estimate(by_repeat, by_fold, level):
    """Estimate from changes by repeat, and from those of the first repeat by fold.

    Each fold of validation points was left out. The error is that of the jackknife over
    the points, and that of the mean over repeats.
    """
    n_repeats = len(by_repeat)
    n_folds = len(by_fold)
    mean = by_repeat.mean()
    variance_of_points = 0.0
    if n_folds:
        squares = (by_fold - by_fold.mean()) ** 2
        variance_of_points = (n_folds - 1) / n_folds * squares.sum()
    variance_of_repeats = 0.0
    if n_repeats > 1:
        variance_of_repeats = by_repeat.var(ddof=1) / n_repeats
    variance = variance_of_points + variance_of_repeats
    if not variance > 0:
        return _Estimate(mean, 0.0, mean)

    # Degrees of freedom of the sum of two variances by Satterthwaite's approximation.
    uncertainty = variance_of_points**2 / max(n_folds - 1, 1)
    uncertainty += variance_of_repeats**2 / max(n_repeats - 1, 1)
    degrees = variance**2 / uncertainty
    error = np.sqrt(variance)
    return _Estimate(mean, error, mean - student.ppf(level, degrees) * error)


def _sentence(result, pay):
    """The result in one sentence."""
    worst = result.worst
    n_attacks = len(result.attack)
    if np.isnan(result.gain[worst]):
        size = f"{result.change[worst]:+.3g} (error {result.change_error[worst]:.2g})"
    else:
        gain = 100 * result.gain[worst]
        size = f"{gain:+.0f} % (error {100 * result.gain_error[worst]:.0f})"
    attack = result.attack[worst]
    if not result.proved.any():
        return (
            f"No gain of {n_attacks} manipulations is proved. The first is "
            f"{attack!r}: {size}."
        )
    paid = "share" if pay == "share" else "payment"
    return (
        f"By {attack!r} the party changes its {paid} by {size}, from "
        f"{result.honest:.3g}; {int(result.proved.sum())} of {n_attacks} manipulations "
        "are proved to pay."
    )


# The display --------------------------------------------------------------------------


class ManipulationDisplay:
    """Gains by manipulation: a line per manipulation, a column per rule of payment.

    Each cell has the gain in %, in bold on a colour where it is proved to be above 0.

    Parameters
    ----------
    results : Bunch or dict of str to Bunch
        Results of `manipulation_gain`. Several, by the name of the rule, must have the
        same manipulations.

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
    ...     attack=["rows 4 times", "half withheld"],
    ...     gain=np.array([1.4, -0.5]),
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
        # Adding zero makes -0 a 0.
        gains = np.round([100 * result.gain for result in results.values()]).T + 0.0
        proved = np.array([result.proved for result in results.values()]).T

        ax = open_axes(ax, type(self).__name__, 1.6 * len(attacks), 8 * len(results))
        ax.spines[:].set_visible(False)
        # A gain that is not proved has the colour of 0.
        colored_gains = np.where(proved | (gains < 0), gains, 0.0)
        self.image_ = ax.imshow(
            colored_gains, cmap="RdBu_r", vmin=-200, vmax=200, aspect="auto"
        )
        self.text_ = np.empty(gains.shape, dtype=object)
        for (i, j), gain in np.ndenumerate(gains):
            self.text_[i, j] = ax.text(
                j,
                i,
                f"{gain:+.0f}",
                ha="center",
                va="center",
                weight="bold" if proved[i, j] else "normal",
                color="white" if abs(gain) > 150 else "black",
            )
        ax.set_yticks(range(len(attacks)), attacks)
        ax.set_xticks(range(len(results)), results)
        ax.tick_params(length=0)
        ax.xaxis.tick_top()
        ax.set_title("gain of a party, %")
        self.ax_ = ax
        self.figure_ = ax.figure
        return self
