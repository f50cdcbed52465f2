"""Timing side by side: what is compared runs in turn, in one process, and the ratio is
reported."""

import os
import subprocess
import sys
from time import perf_counter, sleep

import numpy as np
import pytest


@pytest.fixture
def ratio(record_property, capsys):
    """Median over rounds of the time of ``ours`` over that of ``theirs``, printed and
    limited."""

    def measure(name, ours, theirs, limit, rounds=7):
        ours()  # compiles, and touches memory for the first time
        theirs()
        ratios = []
        for _ in range(rounds):
            t0 = perf_counter()
            theirs()
            t1 = perf_counter()
            sleep(
                0.1
            )  # idle BLAS threads spin for a while, and would take a core from ours
            t2 = perf_counter()
            ours()
            ratios.append((perf_counter() - t2) / (t1 - t0))
        median = float(np.median(ratios))
        spread = f"[{min(ratios):.3g}, {max(ratios):.3g}]"
        record_property(name, median)
        with capsys.disabled():
            print(
                f"\n{name}: {median:.3g} {spread} x the time compared with; limit {limit:g}"
            )
        assert median <= limit
        return median

    return measure


@pytest.fixture
def against_a_peer(capsys):
    """Median quotient of numbers that a peer and skvalue print, each in a process of
    one thread."""

    def numbers(python, code):
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        result = subprocess.run(
            [python, "-W", "ignore", "-c", code],
            capture_output=True, text=True, check=True, env=os.environ | threads,
        )  # fmt: skip
        return np.prod([float(word) for word in result.stdout.splitlines()[-1].split()])

    def measure(name, variable, common, theirs, ours, rounds=3):
        python = os.environ.get(variable)
        if python is None:
            pytest.skip(f"{variable} names no Python with the peer")
        ratios = [
            numbers(python, common + theirs) / numbers(sys.executable, common + ours)
            for _ in range(rounds)
        ]
        with capsys.disabled():
            print(f"\n{name}: {sorted(ratios)}")
        return np.median(ratios)

    return measure
