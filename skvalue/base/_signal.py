"""Whether the noise of private values exceeds what they say, decided in one place."""

import numpy as np
from scipy.stats import chi2

from .._utils.warned import warn
from ..exceptions import NoiseExceedsSignalWarning

_PROBABILITY = 0.01


def warn_if_noise_exceeds(values, errors, advice, warn=warn, what="the values"):
    """Warn, in one sentence, if the noise of values exceeds their signal.

    The mean square of noisy values is that of the signal plus that of the noise, on
    average. There is a warning if what is left of it without the noise is less than the
    noise, or if noise alone would be as large in one of a hundred releases: for two
    values that is 4.6 times the noise, for sixty 1.5 times. NaN, of values that were
    not released, is left out.

    Parameters
    ----------
    values : array-like of shape (n,)
        The values. They and their errors must be public, or a function of what was
        released: whether there is a warning tells of them.
    errors : array-like of shape (n,)
        Their standard errors, which contain the noise.
    advice : str
        What to do, as the end of a sentence.
    warn : callable, default=`warn`
        Takes the message and the class of the warning: the `warn` of a `Run`, whose
        warnings are issued after the values are set.
    what : str, default="the values"
        What the values are, in the sentence.

    Returns
    -------
    exceeds : bool
        Whether there was a warning.
    """
    values = np.asarray(values, dtype=np.float64)
    errors = np.asarray(errors, dtype=np.float64)
    is_known = np.isfinite(values) & ~np.isnan(errors)
    if not is_known.any():
        return False

    size = np.mean(values[is_known] ** 2)
    noise = np.mean(errors[is_known] ** 2)
    # Independent normal noise of equal size would be larger with this probability.
    n_known = np.count_nonzero(is_known)
    of_noise_alone = chi2.isf(_PROBABILITY, n_known) / n_known
    if not size < noise * max(2.0, of_noise_alone):
        return False
    warn(
        f"Noise exceeds the signal: the root mean square of {what} is "
        f"{np.sqrt(size):.2g} and that of their errors {np.sqrt(noise):.2g}, so that "
        f"they say little of order or size; {advice}.",
        NoiseExceedsSignalWarning,
    )
    return True
