"""Gaussian naive Bayes on many coalitions at once."""

import numpy as np
from scipy.special import logsumexp
from sklearn.naive_bayes import GaussianNB

from ...linear import FAILED, ONE_CLASS, SOLVED, UNSOLVED
from .base import BatchedSolver, one_class
from .bayes_kernels import log_likelihoods


class BayesSolver(BatchedSolver):
    """Means and variances of classes, in two compiled passes over the rows."""

    name = "naive Bayes"
    estimator = GaussianNB
    methods = ("predict", "predict_proba")

    def fits(self):
        priors = self.training.estimator.priors
        return priors is None or (
            len(priors) == self.n_classes
            and np.isclose(sum(priors), 1)
            and min(priors) > 0
        )

    def tile_scores(self, masks, sizes):
        estimator = self.training.estimator
        counts = self.counts(masks)
        status = np.where(one_class(counts), ONE_CLASS, SOLVED)
        priors = np.empty(0)
        if estimator.priors is not None:
            priors = np.asarray(estimator.priors, dtype=np.float64)
            # The estimator needs as many priors as the coalition has classes.
            lacks_class = (counts == 0).any(axis=1)
            status[(status == SOLVED) & lacks_class] = FAILED

        joint = np.full((len(masks), len(self.X_val), self.n_classes), -np.inf)
        usable = log_likelihoods(
            X=self.X,
            y=self.y,
            w=self.weights,
            priors=priors,
            smoothing=estimator.var_smoothing,
            masks=masks,
            X_val=self.X_val,
            joint=joint,
        )
        status[~usable & (status == SOLVED)] = UNSOLVED

        # Of one class, that class is certain. What has no model has no score either.
        certain = np.where(counts > 0, 0.0, -np.inf)
        joint[status == ONE_CLASS] = certain[status == ONE_CLASS, None]
        joint[(status == FAILED) | (status == UNSOLVED)] = 0.0
        return self.score_votes(joint, counts, sizes, _probabilities), status


def _probabilities(joint):
    """Probabilities, rounded as the estimator rounds them for the log-loss."""
    return np.exp(joint - logsumexp(joint, axis=2, keepdims=True))
