"""Whether the noise of private values exceeds what they say, decided in one place."""

import numpy as np

from .._utils.warned import warn
from ..exceptions import NoiseExceedsSignalWarning


def warn_if_noise_exceeds(values, errors, advice, warn=warn, what="the values"):
    """Warn, in one sentence, if the noise of values exceeds their signal.

    The mean square of noisy values is that of the signal plus that of the noise. The
    signal is so estimated by what is left of it without the noise, and the fit warns if
    that is less than the noise. NaN, of values that were not released, is left out.

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
    if not noise > size - noise:
        return False
    warn(
        f"Noise exceeds the signal: the root mean square of {what} is "
        f"{np.sqrt(size):.2g} and that of their errors {np.sqrt(noise):.2g}, so that "
        f"they say little of order or size; {advice}.",
        NoiseExceedsSignalWarning,
    )
    return True
