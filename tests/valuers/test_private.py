"""What every private valuer promises, over one table of them."""

import pickle

import numpy as np
import pytest
from problems import two_classes
from sklearn.base import clone

from skvalue import (
    FederatedSemivalueValuer,
    GradientSemivalueValuer,
    LayeredShapleyValuer,
    TKNNShapleyValuer,
)
from skvalue.privacy import Ledger, SeededNoiseWarning

PRIVATE = {
    "federated": FederatedSemivalueValuer(epsilon=1.0, n_rounds=3, random_state=0),
    "gradient": GradientSemivalueValuer(epsilon=1.0, n_permutations=5, random_state=0),
    "layered": LayeredShapleyValuer(
        epsilon=1.0, l2=1.0, n_layers=2, release="publish", random_state=0
    ),
    "tknn": TKNNShapleyValuer(0.3, epsilon=1.0),
}


@pytest.fixture(params=PRIVATE)
def valuer(request):
    return clone(PRIVATE[request.param])


@pytest.fixture
def problem(rng):
    return two_classes(rng, names=None)


def test_validation_points_must_be_passed(valuer, problem):
    with pytest.raises(ValueError, match="X_val and y_val must be passed"):
        valuer.fit(*problem.rows)


def test_a_seed_voids_the_guarantee_with_one_warning(valuer, problem):
    valuer.set_params(noise_random_state=0)
    with pytest.warns(SeededNoiseWarning) as record:
        problem.fit(valuer)
    seeded = [warning for warning in record if warning.category is SeededNoiseWarning]
    assert len(seeded) == 1
    assert valuer.privacy_.guarantee is None


@pytest.mark.filterwarnings("ignore::skvalue.privacy.SeededNoiseWarning")
def test_a_seed_gives_the_same_values_again(valuer, problem):
    valuer.set_params(noise_random_state=0)
    values = problem.fit(valuer).values_
    np.testing.assert_array_equal(problem.fit(clone(valuer)).values_, values)


def test_noise_without_a_seed_is_fresh(valuer, problem):
    values = problem.fit(valuer).values_
    assert not np.array_equal(problem.fit(clone(valuer)).values_, values)
    assert "differential privacy" in valuer.privacy_.guarantee


@pytest.fixture
def exact_after_private(valuer, problem):
    """An exact fit after a private one."""
    problem.fit(valuer).set_params(epsilon=None)
    if "release" in valuer.get_params():
        valuer.set_params(release="query")
    return problem.fit(valuer)


def test_an_exact_fit_after_a_private_one_is_exact(exact_after_private, problem):
    assert not hasattr(exact_after_private, "privacy_")
    expected = problem.fit(clone(exact_after_private)).values_
    np.testing.assert_array_equal(exact_after_private.values_, expected)


def test_an_exact_fit_after_a_private_one_is_pickled_with_its_values(
    exact_after_private,
):
    copy = pickle.loads(pickle.dumps(exact_after_private))
    np.testing.assert_array_equal(copy.values_, exact_after_private.values_)


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "budget.sqlite", "rows", epsilon=1.0, delta=1e-5)


def test_the_ledger_is_charged_with_epsilon(valuer, problem, ledger):
    problem.fit(valuer.set_params(ledger=ledger))
    assert ledger.spent == pytest.approx(1.0, rel=1e-3)
    assert ledger.charges[0].label.startswith(type(valuer).__name__)


def test_a_fit_that_overruns_the_ledger_is_refused(valuer, problem, ledger):
    problem.fit(valuer.set_params(ledger=ledger))
    with pytest.raises(ValueError, match="must fit what is left of the budget"):
        problem.fit(valuer)
    assert ledger.n_charges == 1
