"""All that a private fit shows is a function of what it releases.

Neighbouring data are fitted with the same released statistic, whatever theirs are. The
pickles, representations, reports, warnings, lines of logs and public attributes must be
equal, and so must the values of public points.
"""

import logging
import pickle
import warnings
from unittest.mock import patch

import numpy as np
import pytest
from sklearn.base import clone

from skvalue import LayeredShapleyValuer, TKNNShapleyValuer
from skvalue.collaborative import GramRelease, LogisticRelease, MeanRelease
from skvalue.priarta import PriArTaScorer, SellerRelease
from skvalue.privacy import Release
from tests.privacy.one_row import NO_CLASS, draw_data

MODEL = PriArTaScorer(random_state=0).fit(draw_data(2).X_val).model_
# Numbers of nasty rows.
NUMBERS = [
    *(np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1e-300, 1.0, -1.0),
    *(1e8, 1e38, 1e76, 1.3e154, 1.4e154, 1e160, -1e300, 1.797e308),
]


def of_valuer(valuer):
    return lambda data: data.fit(clone(valuer))


def of_party(party):
    def fit(data):
        rows = (data.X[:, 0],) if isinstance(party, MeanRelease) else (data.X, data.y)
        return clone(party).fit(*rows)

    return fit


def counts_in_balls(**parameters):
    return of_valuer(TKNNShapleyValuer(0.4, epsilon=1.0, **parameters))


def layered(release):
    return of_valuer(
        LayeredShapleyValuer(
            l2=1.0, n_layers=2, epsilon=1.0, release=release, random_state=0
        )
    )


# Fits by name, and the number of classes of their data.
FITS = {
    "tknn": (counts_in_balls(), 2),
    "tknn, automatic radius": (of_valuer(TKNNShapleyValuer(epsilon=1.0)), 2),
    "tknn, replace": (counts_in_balls(relation="replace", max_contributions=2), 2),
    "tknn, raw counts": (counts_in_balls(denoise=False), 2),
    "layered, all": (layered("all"), 2),
    "layered, publish": (layered("publish"), 2),
    "gram": (of_party(GramRelease()), 0),
    "logistic": (of_party(LogisticRelease()), 2),
    "mean": (of_party(MeanRelease()), 0),
    "mean of ones": (of_party(MeanRelease(family="bernoulli")), 0),
    "mean of counts": (of_party(MeanRelease(family="poisson", upper=5)), 0),
}
REMOVES = ("tknn", "tknn, automatic radius", "tknn, raw counts")


class Lines(logging.Handler):
    def __init__(self):
        super().__init__(0)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def all_that_is_public(fit, data):
    """What a fit shows if it releases zeros."""
    handler = Lines()
    logger = logging.getLogger()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(0)
    try:
        with (
            patch.object(Release, "of", lambda release, x: np.zeros_like(x)),
            warnings.catch_warnings(record=True) as issued,
        ):
            warnings.simplefilter("always")
            fitted = fit(data)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    public = {
        "attributes": [name for name in dir(fitted) if not name.startswith("__")],
        "pickle": pickle.dumps(fitted),
        "repr": repr(fitted),
        "report": str(fitted.privacy_),
        "warnings": [str(warning.message) for warning in issued],
        "log": handler.lines,
    }
    if hasattr(fitted, "release_"):
        public["json"] = fitted.release_.to_json()
    if isinstance(fitted, TKNNShapleyValuer):
        public["values"] = fitted.score_samples(data.X_val, data.y_val).tolist()
    return public


def neighbours(name, rng):
    """Two data sets that differ in one row; other rows are nasty, too."""
    _, n_classes = FITS[name]
    data = draw_data(n_classes)
    X = data.X.copy()
    y = data.y.astype(np.float64)
    is_nasty = rng.random(len(X)) < 0.1
    X[is_nasty] = rng.choice(NUMBERS, size=(is_nasty.sum(), X.shape[1]))
    one = data._replace(X=X, y=y)
    X = X.copy()
    y = y.copy()
    X[0] = rng.choice(NUMBERS, size=X.shape[1])
    y[0] = rng.choice([y[0], NO_CLASS, np.nan, np.inf])
    other = data._replace(X=X, y=y)
    if name in REMOVES and rng.random() < 0.5:
        return one, one.without_row()
    return one, other


def check_neighbours(name, n_pairs):
    fit, _ = FITS[name]
    rng = np.random.default_rng(0)
    for _ in range(n_pairs):
        one, other = neighbours(name, rng)
        assert all_that_is_public(fit, one) == all_that_is_public(fit, other)


@pytest.mark.parametrize("name", FITS)
def test_what_is_public_depends_on_the_release_alone(name):
    check_neighbours(name, n_pairs=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_what_is_public_depends_on_the_release_alone_for_many_pairs(name):
    check_neighbours(name, n_pairs=60)


COUNTS = ("n_clipped_rows_", "n_clipped_targets_", "n_null_rows_")


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda data, e: GramRelease(e).fit(data.X, data.y), COUNTS[:2]),
        (lambda data, e: LogisticRelease(e).fit(data.X, data.y), COUNTS[:1]),
        (lambda data, e: MeanRelease(e).fit(data.X[:, 0]), COUNTS[:1]),
        (lambda data, e: SellerRelease(MODEL, e).fit(data.X), COUNTS[::2]),
    ],
    ids=["gram", "logistic", "mean", "seller"],
)
def test_exact_counts_are_neither_shown_nor_pickled(make, names):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        private = make(draw_data(2), 1.0)
        exact = make(draw_data(2), None)
    html = private._repr_html_()
    copy = pickle.loads(pickle.dumps(private))
    for name in names:
        assert getattr(private, name) >= 0
        assert name not in html
        assert name not in dir(private)
        assert not hasattr(copy, name)
        assert hasattr(pickle.loads(pickle.dumps(exact)), name)
