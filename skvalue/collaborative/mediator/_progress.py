"""Steps of the fits of scorers, which callbacks see."""

import time

import numpy as np

# The sampling has as many steps as it needs: these are reported, at most.
N_SAMPLING = 16
N_EVALUATION = 48
N_DRAWS = 16  # of errors of the noise
N_STEPS = N_SAMPLING + N_EVALUATION + N_DRAWS


class FitProgress:
    """Reports the steps of a fit: of the sampling, the evaluation, and the errors.

    Parameters
    ----------
    done : callable, default=None
        Called after each step, of which there are `N_STEPS`.
    max_time : float, default=None
        Seconds of the sampling, from now.
    """

    def __init__(self, done=None, max_time=None):
        self._done = done
        self._n_done = 0
        self._end = np.inf if max_time is None else time.perf_counter() + max_time

    @property
    def is_late(self):
        """Whether `max_time` is over."""
        return time.perf_counter() > self._end

    def sampled(self):
        """Report a step of the sampling."""
        self._report(min(self._n_done + 1, N_SAMPLING))

    def evaluated(self, fraction):
        """Report that a fraction of the coalitions has been evaluated."""
        self._report(N_SAMPLING + int(fraction * N_EVALUATION))

    def drawn(self, fraction):
        """Report that a fraction of the draws for the errors of the noise is done."""
        self._report(N_SAMPLING + N_EVALUATION + int(fraction * N_DRAWS))

    def _report(self, n_done):
        while self._n_done < n_done:
            self._n_done += 1
            if self._done is not None:
                self._done()
