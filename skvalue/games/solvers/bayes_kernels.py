"""Compiled loops of the batched naive Bayes. Importing this imports numba."""

import numpy as np

from ..._utils.compiled import compiled


@compiled
def log_likelihoods(X, y, w, priors, smoothing, masks, X_val, joint):
    """Log of prior times density of each class of a coalition at the validation points.

    Returns a mask of the coalitions with variances above zero.
    """
    n, d = X.shape
    n_classes = joint.shape[2]
    usable = np.zeros(len(masks), np.bool_)
    mean, total = np.empty((n_classes, d)), np.empty(n_classes)
    variance, here = np.empty((n_classes, d)), np.empty(n_classes, np.int64)
    all_mean, all_variance = np.empty(d), np.empty(d)
    for m in range(len(masks)):
        mask = masks[m]
        mean[:], variance[:], total[:], here[:] = 0.0, 0.0, 0.0, 0
        all_mean[:], all_variance[:] = 0.0, 0.0
        for i in range(n):
            if mask[i]:
                here[y[i]] += 1
                total[y[i]] += w[i]
                for a in range(d):
                    mean[y[i], a] += w[i] * X[i, a]
                    all_mean[a] += X[i, a]
        size = here.sum()
        for c in range(n_classes):
            if here[c]:
                mean[c] /= total[c]
        all_mean /= size
        for i in range(n):
            if mask[i]:
                for a in range(d):
                    variance[y[i], a] += w[i] * (X[i, a] - mean[y[i], a]) ** 2
                    all_variance[a] += (X[i, a] - all_mean[a]) ** 2
        epsilon = smoothing * all_variance.max() / size  # from the unweighted rows
        usable[m] = True
        for c in range(n_classes):
            if here[c] == 0:
                continue
            log_prior = np.log(priors[c] if len(priors) else total[c] / total.sum())
            for a in range(d):
                variance[c, a] = variance[c, a] / total[c] + epsilon
                if not variance[c, a] > 0:
                    usable[m] = False
                    break
                log_prior -= 0.5 * np.log(2.0 * np.pi * variance[c, a])
                variance[c, a] = 0.5 / variance[c, a]
            if not usable[m]:
                break
            for v in range(len(X_val)):
                distance = 0.0
                for a in range(d):
                    distance += (X_val[v, a] - mean[c, a]) ** 2 * variance[c, a]
                joint[m, v, c] = log_prior - distance
    return usable
