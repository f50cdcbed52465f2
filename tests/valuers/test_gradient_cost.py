"""Time of valuers that take steps along gradients: forecasts and limits."""

import numpy as np
import pytest
from sklearn.base import clone

from skvalue import FederatedSemivalueValuer, GradientSemivalueValuer
from skvalue.privacy import Ledger

from ..watch import Watch

GRADIENTS = GradientSemivalueValuer(
    n_permutations=60, learning_rate=0.1, random_state=0
)
FEDERATED = FederatedSemivalueValuer(n_rounds=24, learning_rate=0.1, random_state=0)
VALUERS = {
    "gradients": GRADIENTS,
    "private gradients": clone(GRADIENTS).set_params(epsilon=1.0),
    "federated": FEDERATED,
    "private federated": clone(FEDERATED).set_params(epsilon=1.0),
}
pytestmark = pytest.mark.filterwarnings(
    "ignore::skvalue.exceptions.ImpreciseValuesWarning"
)


@pytest.fixture(params=VALUERS)
def valuer(request):
    return clone(VALUERS[request.param])


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(130, 3))
    y = (X[:, 0] > 0).astype(int)
    return (X[:90], y[:90]), {"X_val": X[90:], "y_val": y[90:]}


def n_steps_of(valuer, rows, points, **options):
    """Number of steps of a fit."""
    watch = Watch()
    groups = np.arange(90) % 6
    fitted = clone(valuer).set_params(**options).set_callbacks(watch)
    fitted.fit(*rows, groups=groups, **points)
    assert np.isfinite(fitted.values_).all()
    return watch.ended


def test_cost_counts_the_steps_of_all_splits(valuer, data):
    rows, points = data
    cost = valuer.estimate_cost(*rows, groups=np.arange(90) % 6, **points)
    assert cost.n_players == 6
    assert cost.n_steps == n_steps_of(valuer, rows, points)
    assert 0 <= cost.seconds_per_step < cost.seconds < 60


def test_cost_is_at_most_the_limit(valuer, data):
    rows, points = data
    cost = valuer.set_params(max_time=1e-6).estimate_cost(*rows, **points)
    assert cost.seconds == 1e-6


def test_cost_charges_no_ledger_and_fits_nothing(data):
    rows, points = data
    ledger = Ledger(None, "rows", epsilon=10.0, delta=1e-4)
    valuer = clone(VALUERS["private federated"]).set_params(ledger=ledger)
    valuer.estimate_cost(*rows, **points)
    assert ledger.n_charges == 0
    assert not hasattr(valuer, "values_")


def test_a_limit_ends_the_fit_once_there_are_values(valuer, data):
    rows, points = data
    all_steps = n_steps_of(valuer, rows, points)
    assert n_steps_of(valuer, rows, points, max_time=1e6) == all_steps
    burn_in = {"burn_in": 0.5}
    few_steps = n_steps_of(valuer, rows, points, max_time=1e-6, **burn_in)
    assert few_steps == all_steps // 2 + 1


def test_a_limited_fit_has_the_values_of_its_steps(data):
    """A fit of fewer permutations begins with the same ones."""
    rows, points = data
    limited = clone(GRADIENTS).set_params(max_time=1e-6).fit(*rows, **points)
    of_one = clone(GRADIENTS).set_params(n_permutations=1).fit(*rows, **points)
    np.testing.assert_array_equal(limited.values_, of_one.values_)
