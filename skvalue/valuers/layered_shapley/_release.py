"""Private fits of Layered Shapley: what they refuse, what they release, and when."""

from dataclasses import dataclass, field
from threading import Lock

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...privacy import add_noise
from ._designs import Utilities
from ._private import layered_report, plan_release, private_values, secret_value

_CLEAR = (
    "values_error_", "layer_values_", "data_fraction_", "n_evaluations_", "n_failed_", "_queries",
    "_estimates", "_plans", "_players", "_utilities",
)  # fmt: skip
_NO_PROOF = (
    "must be None with epsilon: only the utility of l2 (mean logistic loss of a penalised model) "
    "has a proved bound of what one row can do; accuracy can change by 1 with a row, and a model "
    "with a fixed C, or a free intercept, is not stable enough"
)


class PrivateQueriesMixin:
    """What `skvalue.base._old_private` asks of `LayeredShapleyValuer`, and queries one by one."""

    def _check_private_parameters(self):
        if self.epsilon is None:
            return
        for name in ("estimator", "scoring", "empty_utility"):
            if getattr(self, name) is not None:
                raise ValueError(f"{name} {_NO_PROOF}. Got {getattr(self, name)!r}.")
        for name in ("l2", "n_layers"):
            if getattr(self, name) is None:
                raise ValueError(
                    f"{name} must be a number with epsilon: the noise is for the utility of l2 in "
                    f"layers up to n_layers. Got {name}=None."
                )
        if self.design == "paper" and self.noise != "paper":
            raise ValueError(
                "design must be 'blocks' or 'iid' with epsilon: the number of coalitions that "
                "'paper' draws is random, and no bound holds for what is divided by its mean. Got "
                "design='paper'."
            )
        if self.max_evaluations is not None or not self.include_empty:
            raise ValueError(
                "max_evaluations must be None and include_empty True with epsilon. Got "
                f"max_evaluations={self.max_evaluations!r}, include_empty={self.include_empty!r}."
            )
        if self.noise == "paper" and self.ledger is not None:
            raise ValueError(
                "ledger must be None with noise='paper', whose cost is not known. Got a ledger."
            )
        if self.release != "query" and self.max_queries != 1:
            raise ValueError(
                "max_queries is for release='query'. Got "
                f"max_queries={self.max_queries} with release={self.release!r}."
            )

    def _fit_private(self, X, y, X_val, y_val, groups, sample_weight_val):
        if groups is not None:
            raise ValueError("groups must be None with epsilon: the unit protected is one row.")
        if self.n_layers is not None and self.n_layers > len(X) - 2:
            raise ValueError(
                f"n_layers must be at most {len(X) - 2} with epsilon and {len(X)} rows. Got "
                f"{self.n_layers}."
            )
        for name in _CLEAR:  # of a former fit without privacy, and its coalitions' utilities
            self.__dict__.pop(name, None)
        return super()._fit_private(X, y, X_val, y_val, groups, sample_weight_val)

    def _fit_arrays(self, *args):
        for name in ("_queries", "noise_scale_"):
            self.__dict__.pop(name, None)
        return super()._fit_arrays(*args)

    def _release(self, X, y, judges, n_classes):
        n = len(X)
        names = ("noise", "max_queries", "l2", "max_norm", "fit_intercept", "accuracy", "failure")
        release = plan_release(
            n, self.n_layers, epsilon=self.epsilon, delta=self.delta, release=self.release,
            design="iid" if self.design == "iid" else "blocks", bound=self.bound,
            **{name: getattr(self, name) for name in names},
        )  # fmt: skip
        self._entropy = self._draw_entropy()
        self.noise_scale_, self.counts_ = release.noise.scale, release.counts
        self.truncation_bias_ = self._bounds(n)[1]
        game = self._settings().game(X, y, judges, np.arange(2))
        values = np.full(n, np.nan)
        if self.release == "query":
            self._queries = _Queries(
                release, Utilities(game), self.design, self.epsilon,
                None if self.noise == "paper" else self.max_queries, self.ledger,
                self.noise_random_state,
            )  # fmt: skip
        else:
            clean = private_values(release, Utilities(game), None, self._seeds(0))
            values = add_noise(
                clean, release.noise, ledger=self.ledger,
                label=f"{type(self).__name__}: all values",
                noise_random_state=self.noise_random_state,
            )  # fmt: skip
        self.privacy_ = layered_report(
            release, max_queries=self.max_queries, noise_random_state=self.noise_random_state
        )
        return values, np.nan, game.empty_utility

    def values_for(self, i):
        """Value of one row, as its owner may see it.

        After a private fit with release="query" this is the release: the ledger is charged, noise
        is drawn, and the answer is kept, so that asking again costs nothing.

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
            If there is no row i, more than `max_queries` rows are asked for, or the ledger refuses.
        AttributeError
            If the values of a private fit were lost to pickling.
        """
        check_is_fitted(self)
        queries = self.__dict__.get("_queries")
        n = len(self.values_)
        if queries is None or not -n <= i < n:
            return super().values_for(i)
        i = int(i) % n
        with queries.lock:  # two threads that ask together would be told the noise of two releases
            if i not in queries.answers:
                if queries.most is not None and len(queries.answers) >= queries.most:
                    raise ValueError(
                        "max_queries must be larger to ask for more rows: "
                        f"epsilon={queries.epsilon:g} is the total of {queries.most} queries, and "
                        "so many rows have been asked for. Another fit is another release."
                    )
                queries.answers[i] = self._answer(queries, i)
                self.values_[i] = queries.answers[i]
            return queries.answers[i]

    def _answer(self, queries, i):
        seed = queries.noise_random_state
        label = f"{type(self).__name__}: one value"
        if queries.ledger is not None:
            queries.ledger.charge(queries.release.charge, label=label)
        if queries.design == "iid":
            other = None if seed is None else seed + 1 + i
            clean = secret_value(queries.release, queries.utilities, i, other)
        else:
            clean = private_values(queries.release, queries.utilities, [i], self._seeds(0))[0]
        seed = None if seed is None else seed + i
        return float(add_noise(clean, queries.release.noise, noise_random_state=seed))

    def _score_released(self, X, y):
        self._refuse_if_private("Valuing rows that were not in fit")

    def _refuse_reader(self):
        if self.release != "publish":
            super()._refuse_reader()
        if self._wants_privacy() and self.release == "query":
            raise ValueError(
                "release must be 'all' or 'publish' for fit_transform with epsilon: with 'query' "
                "fit releases nothing. Got release='query'."
            )

    def __getstate__(self):
        if "_queries" in self.__dict__:
            raise TypeError(
                f"A {type(self).__name__} fitted with epsilon and release='query' holds the rows, "
                "to answer queries: it is for the curator's process, and refuses to be pickled."
            )
        return super().__getstate__()

    @property
    def _curator(self):
        published = self._fitted_privately() and self.privacy_.notion == "central"
        return () if published else super()._curator


@dataclass
class _Queries:
    """What answers queries: held by the curator's object alone.

    With the parameters of the fit, which the noise and `privacy_` are for, whatever `set_params`
    does later.
    """

    release: object
    utilities: object
    design: str
    epsilon: float
    most: int | None
    ledger: object
    noise_random_state: int | None
    answers: dict = field(default_factory=dict)
    lock: object = field(default_factory=Lock)
