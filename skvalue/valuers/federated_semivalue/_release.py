"""Releases of the updates of parties."""

import numpy as np

from ..._utils.private_entries import quiet_arithmetic
from ...privacy import clip_and_noise


def release_updates(updates, clip, draw=None, factors=1.0, stream=(0,), names=None):
    """Clip updates (n_players, p) and add noise ``factors * draw(shape, stream)``.

    Without noise, raises ValueError for updates that are not finite, with the name of
    the player; with noise they are zero, since an error would depend on private rows.
    """
    updates = np.asarray(updates, dtype=np.float64)
    if draw is None:
        is_finite = np.isfinite(np.linalg.norm(updates, axis=1))
        if not is_finite.all():
            number = int(np.argmin(is_finite))
            name = number if names is None else names[number]
            raise ValueError(
                f"updates must be finite. Got one that is not, of party {name!r}: its "
                "rows are too large, or the learning rate is."
            )
        return clip_and_noise(updates, clip)
    factors = np.reshape(factors, (-1, 1))
    noise = factors * draw(updates.shape, stream)
    with quiet_arithmetic():
        return clip_and_noise(updates, clip, noise, factors * draw.scale)


class RationedNoise:
    """Noise that may be drawn `n_rounds` times by all copies of a valuer together.

    Rounds that fail count too.
    """

    def __init__(self, release, n_rounds):
        self._draw = release.source()
        self._n_rounds = n_rounds
        # An iterator, so that no two threads take the same release.
        self._remaining = iter(range(n_rounds))
        self.scale = self._draw.scale

    def __call__(self, shape, stream):
        if next(self._remaining, None) is None:
            raise ValueError(
                "n_rounds must be at least the number of releases of a party, failed "
                "rounds included, since noise is made for it: call start again with a "
                f"larger n_rounds. Got release {self._n_rounds + 1} with "
                f"n_rounds={self._n_rounds}."
            )
        return self._draw(shape, stream)

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError(
            "A private training belongs to the process that started it, where its "
            "releases are counted: its valuer cannot be pickled."
        )
