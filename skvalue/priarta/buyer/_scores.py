"""What a buyer reads off summaries: scores, their errors, and why a seller is far."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..seller.summary import Summary, read_summary
from ._estimates import estimate_summaries
from ._simulation import simulate_scores
from .metrics import factored_wasserstein, principal_contributions

__all__ = ["SummaryScores"]

_FLOOR_QUANTILE = 0.95
_AT_ONCE = 50  # sellers whose matrices the cache holds


class SummaryScores:
    """The part of a fitted `PriArTaScorer` that sees summaries and no rows.

    It needs ``model_``, ``components_``, ``n_samples_`` and ``shrink``, the buyer's moments in
    ``_buyer`` and a ``_seed`` for simulations.
    """

    def score_summaries(self, summaries):
        """Scores of sellers from what they sent; files are not trusted.

        Parameters
        ----------
        summaries : sequence of Summary, str or path-like
            Summaries, or the names of their files.

        Returns
        -------
        scores : ndarray of shape (n_sellers, 1)
            By the metric.

        Raises
        ------
        ValueError
            If a summary was made with another model, or is damaged, too long or impossible.
        TypeError
            If there is something else among them.
        """
        summaries, scores = self._read(summaries), []
        for start in range(0, len(summaries), _AT_ONCE):
            estimates = self._estimates(summaries[start : start + _AT_ONCE])
            scores.append(self._buyer.score(estimates.mean, estimates.factor))
        return np.concatenate([*scores, []])[:, None]

    def score_errors(self, summaries, *, n_draws=64):
        """Standard errors of scores, from the summaries alone: no further release is needed.

        Rows are taken to come from a Gaussian distribution with the estimated moments; the error
        is the standard deviation of scores of simulated releases, so it covers the sampling of
        rows and the noise, but not the bias of clipping.

        Parameters
        ----------
        summaries : sequence of Summary, str or path-like
            As in `score_summaries`.
        n_draws : int, default=64
            Releases to simulate for each.

        Returns
        -------
        errors : ndarray of shape (n_sellers,)
            Standard errors.

        Raises
        ------
        ValueError
            As in `score_summaries`.
        """
        summaries = self._read(summaries)
        estimates = self._estimates(summaries)
        rng = np.random.default_rng(self._seed)
        return np.array(
            [
                simulate_scores(
                    self._buyer, mean, factor, s, s.n_samples - 1, self.shrink, n_draws, rng
                ).std(ddof=1)
                for s, mean, factor in zip(summaries, estimates.mean, estimates.factor)
            ]
        )

    def noise_floor(self, summaries):
        """Scores below which a seller cannot be told from the buyer, by its summary's noise.

        Parameters
        ----------
        summaries : sequence of Summary, str or path-like
            As in `score_summaries`.

        Returns
        -------
        floors : ndarray of shape (n_sellers,)
            A seller with the buyer's own distribution stays below with probability 0.95.

        Raises
        ------
        ValueError
            As in `score_summaries`.
        """
        return np.array([self._floor(summary) for summary in self._read(summaries)])

    def _floor(self, summary, n_draws=400):
        n = 1 / (1 / summary.n_samples + 1 / self.n_samples_)
        rng = np.random.default_rng(self._seed)
        n_draws = max(100, min(n_draws, 500_000 // self.model_.n_dimensions**2))
        buyer = self._buyer
        scores = simulate_scores(
            buyer, buyer.mean, buyer.factor, summary, n, self.shrink, n_draws, rng
        )
        return float(np.quantile(scores, _FLOOR_QUANTILE))

    def pairwise_distances(self, summaries):
        """2-Wasserstein distances between sellers: near-duplicates stand out.

        Parameters
        ----------
        summaries : sequence of Summary, str or path-like
            As in `score_summaries`.

        Returns
        -------
        distances : ndarray of shape (n_sellers, n_sellers)
            Symmetric, with zeros on the diagonal.

        Raises
        ------
        ValueError
            As in `score_summaries`.
        """
        e = self._estimates(self._read(summaries))
        n = len(e.mean)
        distances = np.zeros((n, n))
        for i in range(n - 1):
            distances[i, i + 1 :] = factored_wasserstein(
                e.mean[i], e.factor[i], e.mean[i + 1 :], e.factor[i + 1 :]
            )
        return distances + distances.T

    def explain(self, summaries):
        """Why a seller is far: its squared Wasserstein distance along the buyer's directions.

        Parameters
        ----------
        summaries : sequence of Summary, str or path-like
            As in `score_summaries`.

        Returns
        -------
        contributions : ndarray of shape (n_sellers, 2, n_dimensions)
            Of the shift of the mean (first) and of the change of spread along each row of
            `components_`; for a seller they sum to its squared distance.

        Raises
        ------
        ValueError
            As in `score_summaries`.
        """
        e = self._estimates(self._read(summaries))
        buyer = self._buyer
        return principal_contributions(
            buyer.mean, buyer.covariance, e.mean, e.covariance, self.components_
        )

    def _read(self, summaries):
        """Summaries that were made with this model."""
        check_is_fitted(self, "model_")
        if isinstance(summaries, str | Summary):
            raise TypeError("summaries must be a sequence of summaries or paths. Got one alone.")
        model, read = self.model_, []
        for place, source in enumerate(summaries):
            summary = read_summary(source, model.n_dimensions)
            if summary.model != model.fingerprint:
                raise ValueError(
                    f"summaries must be made with this buyer's model, {model.fingerprint[:12]}... "
                    f"Got one of model {summary.model[:12]}... at place {place}."
                )
            for name in ("max_norm", "mean_weight", "centre"):
                if not np.array_equal(getattr(summary, name), getattr(model, name)):
                    raise ValueError(
                        f"summaries must have the {name} of the buyer's model that they name. Got "
                        f"another at place {place}."
                    )
            read.append(summary)
        return read

    def _estimates(self, summaries):
        return estimate_summaries(self._buyer, summaries, self.shrink)
