# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
# cython: freethreading_compatible=True
"""Loops of the batched naive Bayes."""

from libc.math cimport M_PI, log
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

import numpy as np


cdef struct Moments:  # of a coalition, by class
    double *mean  # (n_classes, d)
    double *variance  # (n_classes, d)
    double *total  # weight
    int64_t *count
    double *all_mean  # (d,), of the unweighted rows
    double *all_variance


cdef struct Rows:
    Py_ssize_t n
    Py_ssize_t d
    Py_ssize_t n_classes
    const double *X
    const int64_t *y
    const double *w


cdef double find_moments(
    const Rows *rows, const uint8_t *mask, const Moments *moments
) noexcept nogil:
    """Means and sums of squares of the classes of a coalition.

    Returns the largest variance of a column, of all rows without weights.
    """
    cdef Py_ssize_t d = rows.d, i, a, c, size = 0
    cdef const double *x
    cdef double *mean
    cdef double *variance
    cdef double w, largest
    memset(moments.mean, 0, rows.n_classes * d * sizeof(double))
    memset(moments.variance, 0, rows.n_classes * d * sizeof(double))
    memset(moments.total, 0, rows.n_classes * sizeof(double))
    memset(moments.count, 0, rows.n_classes * sizeof(int64_t))
    memset(moments.all_mean, 0, d * sizeof(double))
    memset(moments.all_variance, 0, d * sizeof(double))
    for i in range(rows.n):
        if mask[i]:
            c = rows.y[i]
            x = rows.X + i * d
            w = rows.w[i]
            mean = moments.mean + c * d
            moments.count[c] += 1
            moments.total[c] += w
            size += 1
            for a in range(d):
                mean[a] += w * x[a]
                moments.all_mean[a] += x[a]
    for c in range(rows.n_classes):
        if moments.count[c]:
            for a in range(d):
                moments.mean[c * d + a] /= moments.total[c]
    for a in range(d):
        moments.all_mean[a] /= size

    for i in range(rows.n):
        if mask[i]:
            c = rows.y[i]
            x = rows.X + i * d
            w = rows.w[i]
            mean = moments.mean + c * d
            variance = moments.variance + c * d
            for a in range(d):
                variance[a] += w * ((x[a] - mean[a]) * (x[a] - mean[a]))
                moments.all_variance[a] += (x[a] - moments.all_mean[a]) * (
                    x[a] - moments.all_mean[a]
                )
    largest = moments.all_variance[0]
    for a in range(1, d):
        largest = max(largest, moments.all_variance[a])
    return largest / size


def log_likelihoods(
    X, const int64_t[::1] y, const double[::1] w, const double[::1] priors,
    double smoothing, masks, X_val, double[:, :, ::1] joint,
):
    """Log of prior times density of each class of a coalition at the validation points.

    Returns a mask of the coalitions with variances above zero.
    """
    cdef const double[:, ::1] x = np.ascontiguousarray(X, np.float64)
    cdef const double[:, ::1] points = np.ascontiguousarray(X_val, np.float64)
    cdef const uint8_t[:, ::1] is_in = np.ascontiguousarray(masks).view(np.uint8)
    cdef Py_ssize_t n = x.shape[0], d = x.shape[1], n_classes = joint.shape[2]
    cdef Py_ssize_t m, v, a, c
    cdef double epsilon, log_prior, distance, variance, weight_sum
    usable = np.zeros(is_in.shape[0], dtype=bool)
    cdef uint8_t[::1] is_usable = usable.view(np.uint8)
    cdef double[::1] memory = np.empty(2 * n_classes * d + n_classes + 2 * d)
    cdef int64_t[::1] counts = np.empty(n_classes, np.int64)
    cdef Rows rows = Rows(n, d, n_classes, &x[0, 0], &y[0], &w[0])
    cdef Moments moments
    moments.mean = &memory[0]
    moments.variance = moments.mean + n_classes * d
    moments.total = moments.variance + n_classes * d
    moments.all_mean = moments.total + n_classes
    moments.all_variance = moments.all_mean + d
    moments.count = &counts[0]
    with nogil:
        for m in range(is_in.shape[0]):
            epsilon = smoothing * find_moments(&rows, &is_in[m, 0], &moments)
            is_usable[m] = True
            weight_sum = 0.0
            for c in range(n_classes):
                weight_sum += moments.total[c]
            for c in range(n_classes):
                if moments.count[c] == 0:
                    continue
                log_prior = moments.total[c] / weight_sum
                if priors.shape[0]:
                    log_prior = priors[c]
                log_prior = log(log_prior)
                for a in range(d):
                    variance = moments.variance[c * d + a] / moments.total[c] + epsilon
                    if not variance > 0:
                        is_usable[m] = False
                        break
                    log_prior -= 0.5 * log(2.0 * M_PI * variance)
                    moments.variance[c * d + a] = 0.5 / variance
                if not is_usable[m]:
                    break
                for v in range(points.shape[0]):
                    distance = 0.0
                    for a in range(d):
                        distance += (
                            (points[v, a] - moments.mean[c * d + a])
                            * (points[v, a] - moments.mean[c * d + a])
                            * moments.variance[c * d + a]
                        )
                    joint[m, v, c] = log_prior - distance
    return usable
