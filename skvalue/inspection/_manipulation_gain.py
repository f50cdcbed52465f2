"""What a party gains when it manipulates the rows that it sends."""

import inspect
from numbers import Integral

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
from .manipulations import ATTACKS, Sent


def _values(valuer, release, sent, points):
    """Names of the senders, and their values at the given validation points."""
    names = np.unique(sent.names)
    if hasattr(valuer, "score_summaries"):
        datasets = [sent.X[sent.names == name] for name in names]
        return names, valuer.transform(datasets)[:, 0]
    valuer, given = clone(valuer), {}
    if points is not None:
        given = {"X_val": sent.X_val[points], "y_val": sent.y_val[points]}
    if release is None:
        valuer.fit(sent.X, sent.y, groups=sent.names, **given)
        return valuer.groups_, valuer.values_
    releases = {
        int(name): clone(release)
        .fit(*(part[sent.names == name] for part in sent[:2]))
        .release_
        for name in names
    }
    if "X_val" not in inspect.signature(valuer.fit).parameters:
        given = {}
    valuer.fit(releases, **given)
    return np.array(valuer.parties_), valuer.values_


def _paid(names, values, pay):
    """What the party receives: its share of a budget, or the sum of the values of its
    names."""
    if pay == "value":
        return values[names <= 0].sum()
    values = np.maximum(values, 0.0)
    return values[names <= 0].sum() / (values.sum() or 1.0)


def _estimate(whole, left, level):
    """Mean over repeats, its standard error, and whether it is proved to be above 0.

    ``whole`` has one entry per repeat; ``left`` one per fold of validation points left
    out, of the first repeat. The error is that of the jackknife and that of the mean
    over repeats.
    """
    folds, repeats = len(left), len(whole)
    by_points = (
        (folds - 1) / max(folds, 1) * ((left - left.mean()) ** 2).sum()
        if folds
        else 0.0
    )
    by_luck = whole.var(ddof=1) / repeats if repeats > 1 else 0.0
    variance = by_points + by_luck
    if not variance > 0:
        return whole.mean(), 0.0, whole.mean()
    spread = by_points**2 / max(folds - 1, 1) + by_luck**2 / max(repeats - 1, 1)
    bound = whole.mean() - student.ppf(level, variance**2 / spread) * np.sqrt(variance)
    return whole.mean(), np.sqrt(variance), bound


def _sentence(found, pay):
    """The result in one sentence."""
    i, n = found.worst, len(found.attack)
    size = f"{100 * found.gain[i]:+.0f} % (error {100 * found.gain_error[i]:.0f})"
    if np.isnan(found.gain[i]):
        size = f"{found.change[i]:+.3g} (error {found.change_error[i]:.2g})"
    what = "share" if pay == "share" else "payment"
    if not found.proved.any():
        return f"No gain of {n} manipulations is proved. The first is {found.attack[i]!r}: {size}."
    return (
        f"By {found.attack[i]!r} the party changes its {what} by {size}, from {found.honest:.3g}; "
        f"{int(found.proved.sum())} of {n} manipulations are proved to pay."
    )


def manipulation_gain(
    valuer, X, y, groups, *, party, X_val=None, y_val=None, release=None,
    attacks: object = "default", pay="share", n_folds=10, n_repeats=3, random_state=None,
):  # fmt: skip
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
    X_val, y_val : array-likes of shapes (n_validation, n_features) and (n_validation,), \
            default=None
        Validation points, which the valuer needs. Without them, distances and noise
        have the scale of X, "also validation points" is left out, and errors are those
        over repeats only.
    release : estimator, default=None
        For scorers of parties: what each party fits on its rows, such as `GramRelease`,
        with the attribute `release_`. It is cloned.
    attacks : "default", sequence of str, or dict of str to callable, default="default"
        Names of manipulations, see `skvalue.inspection.manipulations`, or functions
        ``attack(sent, rng)``, where ``sent`` is a named tuple of X, y, names, X_val and
        y_val and ``rng`` a numpy Generator. They return another such tuple; in
        ``names`` the party is 0, or any negative number, and the others are 1, 2, ...
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
    ...     KNNShapleyValuer(), X[:150], y[:150], np.arange(150) % 3, party=0, X_val=X[150:],
    ...     y_val=y[150:], attacks=["rows 4 times", "20 % of labels wrong"], random_state=0,
    ... )
    >>> result.proved.tolist(), bool(result.gain[0] > 0.5)
    ([True, False], True)
    """
    sent = _checked(X, y, groups, party, X_val, y_val)
    attacks = _chosen(attacks, sent.y_val is not None)
    if pay not in ("share", "value"):
        raise ValueError(f"pay must be 'share' or 'value'. Got {pay!r}.")
    for name, number, least in (("n_folds", n_folds, 2), ("n_repeats", n_repeats, 1)):
        if not isinstance(number, Integral) or number < least:
            raise ValueError(
                f"{name} must be an integer of at least {least}. Got {number!r}."
            )
    seed, folds = int(check_random_state(random_state).randint(2**31)), []
    points = None
    if sent.y_val is not None:
        points = np.arange(len(sent.y_val))
        places = np.random.default_rng(seed).permutation(len(points)) % n_folds
        folds = [np.flatnonzero(places != fold) for fold in range(n_folds)]

    def payment(attack, repeat, some):
        # The party may see all validation points.
        played = attack(sent, np.random.default_rng([seed, repeat]))
        return _paid(*_values(valuer, release, played, some), pay)

    plays = {None: lambda sent, rng: sent, **attacks}  # first the honest rows
    whole = {
        name: np.array([payment(play, repeat, points) for repeat in range(n_repeats)])
        for name, play in plays.items()
    }
    left = {
        name: np.array([payment(play, 0, some) for some in folds])
        for name, play in plays.items()
    }
    base, without = whole.pop(None), left.pop(None)
    level, columns = 1 - 0.05 / len(attacks), []  # Bonferroni
    positive = min([*base, *without]) > 0
    for name in attacks:
        change = _estimate(whole[name] - base, left[name] - without, level)
        gain = (np.nan, np.nan, np.nan)
        if positive:
            gain = _estimate(whole[name] / base - 1, left[name] / without - 1, level)
        columns.append([*gain[:2], *change[:2], gain[2] if positive else change[2]])
    gain, gain_error, change, change_error, bounds = np.array(columns).T
    found = Bunch(
        attack=list(attacks), gain=gain, gain_error=gain_error, change=change,
        change_error=change_error, proved=bounds > 1e-9, honest=float(base.mean()),
        worst=int(np.argmax(bounds)), n_fits=len(plays) * (n_repeats + len(folds)),
    )  # fmt: skip
    return Bunch(**found, sentence=_sentence(found, pay))


def _checked(X, y, groups, party, X_val, y_val):
    """The honest rows: the party is 0, the next one 1, and so on."""
    X, y = check_array(X, dtype=np.float64), one_column(y, "y")
    check_consistent_length(X, y, groups)
    names, codes = check_names(groups, "groups")
    if party not in names.tolist() or len(names) < 2:
        raise ValueError(
            f"party must be one of at least two groups, which are {names.tolist()}. Got {party!r}."
        )
    codes = (codes - names.tolist().index(party)) % len(names)
    if (X_val is None) != (y_val is None):
        raise ValueError(
            "X_val and y_val must be passed together. Got only one of them."
        )
    if X_val is None:
        return Sent(X, y, codes, X, None)
    X_val, y_val = check_array(X_val, dtype=np.float64), one_column(y_val, "y_val")
    check_consistent_length(X_val, y_val)
    return Sent(X, y, codes, X_val, y_val)


def _chosen(attacks, has_points):
    """Name -> function of the manipulations to play."""
    if isinstance(attacks, dict) and attacks and all(map(callable, attacks.values())):
        return attacks
    names = (
        list(ATTACKS) if isinstance(attacks, str) and attacks == "default" else attacks
    )
    if isinstance(names, str) or not names or not set(names) <= set(ATTACKS):
        raise ValueError(
            "attacks must be 'default', names of manipulations, or a dict of functions. Got "
            f"{attacks!r}."
        )
    return {
        name: ATTACKS[name] for name in names if has_points or "validation" not in name
    }


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
        gains = (
            np.round([100 * result.gain for result in results.values()]).T + 0.0
        )  # no -0
        proved = np.array([result.proved for result in results.values()]).T
        ax = open_axes(ax, type(self).__name__, 1.6 * len(attacks), 8 * len(results))
        ax.spines[:].set_visible(False)
        shown = np.where(proved | (gains < 0), gains, 0.0)
        self.image_ = ax.imshow(
            shown, cmap="RdBu_r", vmin=-200, vmax=200, aspect="auto"
        )
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
