"""Forecasts of real fits, against the time that they take.

    pytest tests/base/test_forecasts.py -m slow -s

prints a table. The clock is that of the process's CPU time, so that other programs do
not count, and so much faster that a fit of seconds takes two minutes by it.
"""

import logging
import re
import time

import pytest
from problems import two_classes
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import skvalue

pytestmark = pytest.mark.slow

SECONDS = 120  # of each fit, by the clock
LOOP = {"estimator": GaussianNB(), "batch": "never"}  # models are trained one by one
MANY_POINTS = {"n_val": 4000}
# Name -> class, and for each size: number of rows, parameters, and how the problem
# differs from 200 validation points. Fits take up to three seconds of CPU time. (So can
# the search for a radius, which is before the loop: of few points in any fit.)
CASES = {
    "Data Shapley": (
        "DataShapleyValuer",
        [(100, {"max_evaluations": 40_000}), (1000, {"max_evaluations": 15_000})],
    ),
    "Data Shapley, one by one": (
        "DataShapleyValuer",
        [
            (50, {"max_evaluations": 2000, **LOOP}),
            (500, {"max_evaluations": 1500, **LOOP}),
        ],
    ),
    "Banzhaf": (
        "DataBanzhafValuer",
        [(100, {"max_evaluations": 40_000}), (1000, {"max_evaluations": 15_000})],
    ),
    "Beta": (
        "BetaShapleyValuer",
        [(100, {"max_evaluations": 60_000}), (1000, {"max_evaluations": 15_000})],
    ),
    "Layered": (
        "LayeredShapleyValuer",
        [(60, {"max_evaluations": 60_000}), (200, {"max_evaluations": 30_000})],
    ),
    "leave-one-out": (
        "LeaveOneOutValuer",
        [(300, LOOP), (3000, {"estimator": LogisticRegression()})],
    ),
    "Data-OOB": (
        "DataOOBValuer",
        [(200, {"n_estimators": 1300}), (2000, {"n_estimators": 250})],
    ),
    "KNN": ("KNNShapleyValuer", [(5000, {"cv": 12}), (40_000, {}, MANY_POINTS)]),
    "TKNN": (
        "TKNNShapleyValuer",
        [
            (20_000, {"cv": 20, "radius": 0.5}),
            (200_000, {"radius": 0.5}, MANY_POINTS),
        ],
    ),
    "influence": ("InfluenceValuer", [(2000, {"cv": 400}), (80_000, {"cv": 20})]),
    "in-run": (
        "InRunShapleyValuer",
        [(300, {"n_steps": 2000}), (3000, {"n_steps": 500})],
    ),
    "gradients": (
        "GradientSemivalueValuer",
        [(200, {"n_permutations": 8000}), (2000, {"n_permutations": 500})],
    ),
    "federated": (
        "FederatedSemivalueValuer",
        [(100, {"n_rounds": 500}), (400, {"n_rounds": 150})],
    ),
    "unrolled": (
        "UnrolledValuer",
        [(200, {"n_runs": 500}), (2000, {"n_runs": 50, "n_epochs": 10})],
    ),
}
SIZES = [
    pytest.param(name, *size, id=f"{case}, {size[0]} rows")
    for case, (name, sizes) in CASES.items()
    for size in [(*size, {})[:3] for size in sizes]
]


class Messages(logging.Handler):
    """Messages, and the CPU time at which they came."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append((record.getMessage(), time.process_time()))


@pytest.fixture
def messages():
    handler = Messages()
    logger = logging.getLogger("skvalue")
    logger.addHandler(handler)
    yield handler.lines
    logger.removeHandler(handler)


def fit_of(name, n, parameters, points):
    """A function that fits a class to n rows, on one thread."""
    data = two_classes(0, n, **{"n_val": 200, "d": 8, **points})
    valuer = getattr(skvalue, name)()
    names = valuer.get_params()
    seeds = {"n_jobs": 1, "random_state": 0}
    common = {key: value for key, value in seeds.items() if key in names}
    valuer.set_params(**common, **parameters)
    if "cv" in parameters or name == "DataOOBValuer":
        return lambda: valuer.fit(*data.rows)
    return lambda: data.fit(valuer)


def cpu_seconds(fit):
    start = time.process_time()
    fit()
    return time.process_time() - start


def forecast_of(line):
    """The seconds that a message says."""
    number, unit = re.search(r"takes about ([\d.]+) (\w+)", line).groups()
    return float(number) * {"seconds": 1, "minutes": 60, "hours": 3600}[unit]


@pytest.mark.parametrize(("name", "n", "parameters", "points"), SIZES)
def test_a_forecast_of_a_fit_is_within_a_factor_of_two(
    name, n, parameters, points, messages, monkeypatch, capsys
):
    fit = fit_of(name, n, parameters, points)
    seconds = cpu_seconds(fit)
    assert messages == []
    speed = SECONDS / seconds
    monkeypatch.setattr(time, "perf_counter", lambda: speed * time.process_time())
    start = time.process_time()
    fit()
    end = time.process_time()
    monkeypatch.undo()

    [(line, moment)] = messages
    ratio = forecast_of(line) / (speed * (end - start))
    fraction = (moment - start) / (end - start)
    with capsys.disabled():
        print(
            f"\n{name:24} {n:7,} rows, {seconds:4.1f} s of CPU time: forecast after "
            f"{fraction:4.0%} of the time, {ratio:.2f} of what the fit took"
        )
    assert 0.5 < ratio < 2
    assert fraction < 0.5
