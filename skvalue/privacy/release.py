"""The one release of private statistics: what it costs, and the noise that it adds."""

import os
from dataclasses import dataclass, field

from .mechanisms import add_noise, check_process, checked_statistic, noise_source


@dataclass(eq=False)
class Release:
    """The release of private statistics, which is charged and opened once.

    It is opened by `of` or by `source`: the ledger is charged with the event, then
    noise of the same event is drawn. This is the only place that charges a ledger.

    Parameters
    ----------
    event : event
        All that is released, such as a `GaussianEvent`.
    ledger : Ledger, default=None
        The ledger that is charged.
    label : str, default=""
        The label of the charge.
    noise_random_state : int, default=None
        Seed of the noise, for tests only: voids the guarantee.
    report : PrivacyReport, default=None
        What is protected.
    process : int, default=the number of this process
        The process in which the release may be opened; copies keep it.

    Examples
    --------
    >>> from skvalue.privacy import GaussianEvent, Ledger, Release
    >>> ledger = Ledger(None, "patients-2026", epsilon=3.0, delta=1e-5)
    >>> release = Release(GaussianEvent(scale=5.0), ledger, "first look")
    >>> release.of([3.0, 5.0]).shape, ledger.n_charges
    ((2,), 1)
    """

    event: object
    ledger: object = None
    label: str = ""
    noise_random_state: int | None = None
    report: object = None
    process: int = field(default_factory=os.getpid)
    is_open: bool = field(default=False, init=False)

    @property
    def noise(self):
        """The event of the noise of one statistic, without repetitions and samples."""
        event = self.event
        while getattr(event, "event", None) is not None:
            event = event.event
        return event

    def of(self, statistic):
        """Release a statistic.

        Parameters
        ----------
        statistic : array-like
            The private statistic.

        Returns
        -------
        released : ndarray
            The statistic with noise, see `add_noise`.

        Raises
        ------
        RuntimeError
            If the release was opened before, or made in another process.
        TypeError, ValueError
            If noise cannot be added to the statistic, see `add_noise`, or the ledger
            refuses the charge; no noise is drawn then.
        """
        statistic = checked_statistic(statistic, self.noise, self.noise_random_state)
        self._open()
        return add_noise(
            statistic, self.noise, noise_random_state=self.noise_random_state
        )

    def source(self):
        """Open the release for a sequence of statistics.

        Returns
        -------
        draw : callable
            The source of noise, see `noise_source`. The released numbers are rounded by
            `on_grid`, as `clip_and_noise` does.

        Raises
        ------
        RuntimeError
            If the release was opened before, or made in another process.
        ValueError
            If the ledger refuses the charge; no noise is drawn then.
        """
        draw = noise_source(self.noise, noise_random_state=self.noise_random_state)
        self._open()
        return draw

    def check_process(self):
        """Refuse another process than that of the release, such as a forked child.

        Raises
        ------
        RuntimeError
            If this is another process.
        """
        check_process(self.process)

    def _open(self):
        check_process(self.process)
        if self.is_open:
            raise RuntimeError(
                "A release is charged once: another one needs another fit."
            )
        self.is_open = True
        if self.ledger is not None:
            self.ledger.charge(self.event, label=self.label)
