"""Timing side by side: what is compared runs in turn, in one process."""

import os
import subprocess
import sys
from time import perf_counter, sleep

import numpy as np
import pytest


@pytest.fixture
def ratio(record_property, capsys):
    """Median over rounds of a time over that of a reference, printed and limited."""

    def measure(name, workload, reference, limit, rounds=7):
        # The first run compiles, and touches memory for the first time.
        workload()
        reference()
        ratios = []
        for _ in range(rounds):
            start = perf_counter()
            reference()
            reference_seconds = perf_counter() - start
            # Idle BLAS threads spin for a while, and would take a core.
            sleep(0.1)
            start = perf_counter()
            workload()
            ratios.append((perf_counter() - start) / reference_seconds)
        median = float(np.median(ratios))
        record_property(name, median)
        with capsys.disabled():
            print(
                f"\n{name}: {median:.3g} [{min(ratios):.3g}, {max(ratios):.3g}] x the "
                f"time compared with; limit {limit:g}"
            )
        assert median <= limit
        return median

    return measure


@pytest.fixture
def against_a_peer(capsys):
    """Median quotient of what a peer and skvalue print, in processes of one thread.

    The last line that each prints has one number or several, which are multiplied.
    """

    def printed_product(python, code):
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        result = subprocess.run(
            [python, "-W", "ignore", "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | threads,
        )
        last_line = result.stdout.splitlines()[-1]
        return np.prod([float(word) for word in last_line.split()])

    def measure(name, variable, *, common, peer, skvalue, rounds=3):
        python = os.environ.get(variable)
        if python is None:
            pytest.skip(f"{variable} names no Python with the peer")
        ratios = []
        for _ in range(rounds):
            of_peer = printed_product(python, common + peer)
            ratios.append(of_peer / printed_product(sys.executable, common + skvalue))
        with capsys.disabled():
            print(f"\n{name}: {sorted(ratios)}")
        return np.median(ratios)

    return measure
