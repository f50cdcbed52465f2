"""Timing side by side: what is compared runs in turn, in one process, and the ratio is reported."""

from time import perf_counter, sleep

import numpy as np
import pytest


@pytest.fixture
def ratio(record_property, capsys):
    """Median over rounds of the time of ``ours`` over that of ``theirs``, printed."""

    def measure(name, ours, theirs, limit, rounds=7):
        ours()  # compiles, and touches memory for the first time
        theirs()
        ratios = []
        for _ in range(rounds):
            t0 = perf_counter()
            theirs()
            t1 = perf_counter()
            sleep(0.1)  # idle BLAS threads spin for a while, and would take a core from ours
            t2 = perf_counter()
            ours()
            ratios.append((perf_counter() - t2) / (t1 - t0))
        median = float(np.median(ratios))
        spread = f"[{min(ratios):.3g}, {max(ratios):.3g}]"
        record_property(name, median)
        with capsys.disabled():
            print(f"\n{name}: {median:.3g} {spread} x the time compared with; limit {limit:g}")
        return median

    return measure
