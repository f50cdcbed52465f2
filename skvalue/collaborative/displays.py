"""Displays of a collaboration, in scikit-learn's Display convention."""

from itertools import cycle

import numpy as np
from scipy.stats import gaussian_kde
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._utils.plotting import BLUE, GREEN, GREY, RED, open_axes
from .mediator import PredictiveValueScorer

_CURVE_COLORS = (GREY, RED, GREEN, BLUE, "#b07aa1", "#edae49")
_MARGINAL_COLORS = (GREY, GREEN, BLUE, RED)
_MAX_PARTIES = 6


class PrivacyTradeOffDisplay:
    """Value and reward of a party by its Renyi epsilon: the cost of privacy.

    Use `from_releases` to create it.

    Parameters
    ----------
    epsilons : array-like of shape (n_points,)
        Values of the Renyi epsilon.
    curves : dict of str to array-like of shape (n_points,) or (n_repeats, n_points)
        Curves to plot, by label; repeats are rows.
    party : str, default="the party"
        Name of the party, for the axis label.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    lines_ : list of matplotlib Line2D
        One line per curve; for curves with repeats, the mean.
    bands_ : list of matplotlib PolyCollection
        Bands of one standard error on both sides, for curves with repeats.

    See Also
    --------
    GramRelease.path : Releases at several epsilons.

    Examples
    --------
    >>> from skvalue.collaborative import PrivacyTradeOffDisplay
    >>> display = PrivacyTradeOffDisplay([0.1, 1.0], {"reward": [1.0, 2.0]}).plot()
    >>> display.ax_.get_xscale()
    'log'
    """

    def __init__(self, epsilons, curves, *, party="the party"):
        self.epsilons = epsilons
        self.curves = curves
        self.party = party

    @classmethod
    def from_releases(cls, path, others, scorer, scheme, *, party="the party", ax=None):
        """Plot values and rewards for each release of a party.

        The releases of the other parties are fixed.

        Parameters
        ----------
        path : list of NoisyStatistic
            The party's releases, with different epsilons.
        others : dict of party to NoisyStatistic
            Releases of the other parties.
        scorer : BayesianSurpriseScorer
            Scorer, cloned for every release.
        scheme : RhoShapleyReward
            Reward scheme, cloned for every release.
        party : str, default="the party"
            Name of the party; it must not be in `others`.
        ax : matplotlib Axes, default=None
            Axes to plot on; if None, a new figure is created.

        Returns
        -------
        display : PrivacyTradeOffDisplay
            The display, plotted.
        """
        if party in others:
            raise ValueError(f"party must not be one of others. Got {party!r}.")
        path = sorted(path, key=lambda release: release.renyi_epsilon)
        curves = {
            "value of all parties": [],
            "reward of the party": [],
            "value alone": [],
            "Shapley value": [],
        }
        for release in path:
            fitted = clone(scorer).fit({**others, party: release})
            rewards = clone(scheme).fit(fitted)
            i = fitted.parties_.index(party)
            curves["value of all parties"].append(fitted.grand_value_)
            curves["reward of the party"].append(rewards.attained_rewards_[i])
            curves["value alone"].append(fitted.standalone_values_[i])
            curves["Shapley value"].append(fitted.values_[i])
        epsilons = [release.renyi_epsilon for release in path]
        curves = {label: np.array(values) for label, values in curves.items()}
        return cls(epsilons, curves, party=party).plot(ax=ax)

    def plot(self, ax=None):
        """Plot the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on; if None, a new figure is created.

        Returns
        -------
        display : PrivacyTradeOffDisplay
            The display, plotted.
        """
        ax = open_axes(ax, type(self).__name__)
        self.ax_ = ax
        self.figure_ = ax.figure
        self.lines_ = []
        self.bands_ = []
        for (label, values), color in zip(self.curves.items(), cycle(_CURVE_COLORS)):
            values = np.atleast_2d(np.asarray(values, float))
            mean = values.mean(axis=0)
            (line,) = ax.plot(
                self.epsilons, mean, "o-", color=color, label=label, markersize=4
            )
            self.lines_.append(line)
            if len(values) > 1:
                error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
                band = ax.fill_between(
                    self.epsilons,
                    mean - error,
                    mean + error,
                    color=color,
                    alpha=0.2,
                    lw=0,
                )
                self.bands_.append(band)
        ax.set(
            xscale="log",
            xlabel=f"Renyi epsilon of {self.party} (left: more private)",
            ylabel="nats",
        )
        ax.legend(frameon=False)
        return self


class CoalitionValueDisplay:
    """Values of all coalitions, sorted by size, with standard errors.

    Use `from_scorer` to create it.

    Parameters
    ----------
    parties : sequence
        Names of the parties.
    values : array-like of shape (2**n_parties,)
        Values of the coalitions; bit i of the index is party i.
    errors : array-like of shape (2**n_parties,), default=None
        Standard errors.
    value_name : str, default="value (nats)"
        What the values are, for the axis label.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    bars_ : BarContainer
        One bar per coalition, without the empty one.

    See Also
    --------
    skvalue.BayesianSurpriseScorer : Computes the values.
    skvalue.PredictiveValueScorer : Computes them from validation points.

    Examples
    --------
    >>> from skvalue.collaborative import CoalitionValueDisplay
    >>> display = CoalitionValueDisplay(["a", "b"], [0.0, 1.0, 2.0, 2.5]).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['a', 'b', 'a, b']
    """

    def __init__(self, parties, values, errors=None, *, value_name="value (nats)"):
        self.parties = parties
        self.values = values
        self.errors = errors
        self.value_name = value_name

    @classmethod
    def from_scorer(cls, scorer, *, ax=None):
        """Plot the values of a fitted scorer.

        Parameters
        ----------
        scorer : BayesianSurpriseScorer or PredictiveValueScorer
            Scorer fitted on at most 6 parties. Where it states no errors of the noise,
            those of the computation are plotted.
        ax : matplotlib Axes, default=None
            Axes to plot on; if None, a new figure is created.

        Returns
        -------
        display : CoalitionValueDisplay
            The display, plotted.
        """
        check_is_fitted(scorer, "values_")
        n_parties = len(scorer.parties_)
        if n_parties > _MAX_PARTIES:
            raise ValueError(
                f"scorer must have at most {_MAX_PARTIES} parties, since every "
                f"coalition has a bar. Got {n_parties}."
            )
        errors = scorer.coalition_computation_error_
        if hasattr(scorer, "coalition_values_error_"):
            errors = scorer.coalition_values_error_
        value_name = "Bayesian surprise (nats)"
        if isinstance(scorer, PredictiveValueScorer):
            value_name = "predictive value (nats per validation point)"
        display = cls(
            scorer.parties_, scorer.coalition_values_, errors, value_name=value_name
        )
        return display.plot(ax=ax)

    def plot(self, ax=None):
        """Plot the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on; if None, a new figure is created.

        Returns
        -------
        display : CoalitionValueDisplay
            The display, plotted.
        """
        n_parties = len(self.parties)
        grand = 2**n_parties - 1
        ax = open_axes(ax, type(self).__name__, grand)
        self.ax_ = ax
        self.figure_ = ax.figure
        coalitions = sorted(range(1, 2**n_parties), key=lambda k: (k.bit_count(), k))
        labels = []
        colors = []
        for coalition in coalitions:
            members = [p for i, p in enumerate(self.parties) if coalition >> i & 1]
            labels.append(", ".join(map(str, members)))
            if len(members) == 1:
                colors.append(RED)
            else:
                colors.append(BLUE if coalition == grand else GREY)

        values = np.asarray(self.values, float)[coalitions]
        errors = None
        if self.errors is not None:
            errors = np.asarray(self.errors, float)[coalitions]
        positions = range(len(coalitions))
        self.bars_ = ax.barh(positions, values, xerr=errors, color=colors, height=0.7)
        ax.set_yticks(positions, labels)
        ax.invert_yaxis()
        ax.set(xlabel=self.value_name)
        return self


class PosteriorMarginalsDisplay:
    """Densities of one parameter under the posteriors that belong to a reward.

    They are those of the prior, of one party, of its reward and of all parties.

    Use `from_scheme` to create it.

    Parameters
    ----------
    draws : dict of str to array-like of shape (n_draws,)
        Draws of the parameter, by label.
    name : str, default="parameter"
        Name of the parameter.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    lines_ : list of matplotlib Line2D
        Kernel density estimates.

    See Also
    --------
    RhoShapleyReward : Computes the rewards.

    Examples
    --------
    >>> import numpy as np
    >>> from skvalue.collaborative import PosteriorMarginalsDisplay
    >>> draws = np.random.default_rng(0).normal(size=200)
    >>> display = PosteriorMarginalsDisplay({"prior": draws, "reward": draws / 3})
    >>> len(display.plot().lines_)
    2
    """

    def __init__(self, draws, *, name="parameter"):
        self.draws = draws
        self.name = name

    @classmethod
    def from_scheme(
        cls,
        scorer,
        scheme,
        party,
        *,
        parameter=0,
        name=None,
        random_state=None,
        ax=None,
    ):
        """Plot the marginal densities that belong to one party's reward.

        Parameters
        ----------
        scorer : BayesianSurpriseScorer
            The fitted scorer.
        scheme : RhoShapleyReward
            Reward scheme fitted on `scorer`.
        party : object
            Name of the party.
        parameter : int, default=0
            Index of the parameter: a column of the draws.
        name : str, default=None
            Name of the parameter; None uses its index.
        random_state : int, RandomState instance or None, default=None
            Controls the random draws.
        ax : matplotlib Axes, default=None
            Axes to plot on; if None, a new figure is created.

        Returns
        -------
        display : PosteriorMarginalsDisplay
            The display, plotted.
        """
        if party not in scheme.rewards_:
            raise ValueError(
                f"party must be one of {list(scheme.rewards_)}. Got {party!r}."
            )
        random_state = check_random_state(random_state)
        reward_draws = scheme.rewards_[party].samples_
        n_draws = max(1000, len(reward_draws))
        coalitions = {"prior": [], f"{party} alone": [party], "all parties": "all"}
        draws = {}
        for label, coalition in coalitions.items():
            phi = scorer.sample(coalition, n_draws, random_state=random_state)
            draws[label] = phi[:, parameter]
        draws[f"reward of {party}"] = reward_draws[:, parameter]
        return cls(draws, name=name or f"parameter {parameter}").plot(ax=ax)

    def plot(self, ax=None):
        """Plot the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on; if None, a new figure is created.

        Returns
        -------
        display : PosteriorMarginalsDisplay
            The display, plotted.
        """
        ax = open_axes(ax, type(self).__name__)
        self.ax_ = ax
        self.figure_ = ax.figure
        spans = np.array(
            [np.quantile(values, [0.01, 0.99]) for values in self.draws.values()]
        )
        grid = np.linspace(spans[:, 0].min(), spans[:, 1].max(), 400)
        self.lines_ = []
        for (label, values), color in zip(self.draws.items(), _MARGINAL_COLORS):
            density = gaussian_kde(np.asarray(values, float))(grid)
            (line,) = ax.plot(grid, density, color=color, label=label, linewidth=2)
            self.lines_.append(line)
        ax.set(xlabel=self.name, ylabel="density", ylim=(0, None))
        ax.legend(frameon=False)
        return self
