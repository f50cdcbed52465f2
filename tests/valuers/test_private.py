"""What every private valuer keeps, over one table of them."""

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
def data(rng):
    return two_classes(rng, names=None)._asdict()


def test_validation_points_must_be_passed(valuer, data):
    with pytest.raises(ValueError, match="X_val and y_val must be passed"):
        valuer.fit(data["X"], data["y"])


def test_a_seed_voids_the_guarantee(valuer, data):
    valuer.set_params(noise_random_state=0)
    with pytest.warns(SeededNoiseWarning) as warned:
        first = valuer.fit(**data).values_
    assert len([w for w in warned if w.category is SeededNoiseWarning]) == 1
    assert valuer.privacy_.guarantee is None
    with pytest.warns(SeededNoiseWarning):
        np.testing.assert_array_equal(clone(valuer).fit(**data).values_, first)


def test_noise_without_a_seed_is_fresh(valuer, data):
    first = valuer.fit(**data).values_
    assert not np.array_equal(clone(valuer).fit(**data).values_, first)
    assert "differential privacy" in valuer.privacy_.guarantee


def test_an_exact_fit_after_a_private_one_is_exact(valuer, data):
    valuer.fit(**data).set_params(epsilon=None, **_exact(valuer)).fit(**data)
    assert not hasattr(valuer, "privacy_")
    exact = clone(valuer).fit(**data).values_
    np.testing.assert_array_equal(valuer.values_, exact)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(valuer)).values_, exact)


def _exact(valuer):
    """Parameters that an exact fit of the same valuer needs."""
    return {"release": "query"} if "release" in valuer.get_params() else {}


def test_the_ledger_is_charged_and_refuses(valuer, data, tmp_path):
    ledger = Ledger(tmp_path / "budget.sqlite", "rows", epsilon=1.0, delta=1e-5)
    valuer.set_params(ledger=ledger).fit(**data)
    assert ledger.spent == pytest.approx(1.0, rel=1e-3)
    assert ledger.charges[0].label.startswith(type(valuer).__name__)
    with pytest.raises(ValueError, match="must fit what is left of the budget"):
        valuer.fit(**data)
    assert ledger.n_charges == 1
