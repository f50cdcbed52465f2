"""Rows in any unit: fits do not depend on it, or the error says so."""

import numpy as np
import pytest

from skvalue import priarta
from skvalue.priarta import Identity, PriArTaScorer
from skvalue.priarta.maps import unit_of


def buyer_and_seller():
    rows = np.random.default_rng(3).normal(size=(2, 200, 3))
    return rows[0], rows[1] + 1.0


def maps_that_learn_the_unit(name):
    """Parameters of the scorer."""
    if name == "identity":
        return {"representation": Identity(standardize=True)}
    pytest.importorskip("torch")
    options = {"device": "cpu", "random_state": 0}
    if name == "vae":
        return {"latent": priarta.GaussianVAE(2, n_epochs=2, **options)}
    simclr = priarta.SimCLR(projection_dim=3, n_epochs=1, **options)
    return {"representation": simclr}


@pytest.mark.parametrize("scale", [1e-300, 1e160, 1e300])
@pytest.mark.parametrize("name", ["identity", "vae", "simclr"])
def test_scores_of_maps_that_learn_the_unit_do_not_depend_on_it(name, scale):
    maps = maps_that_learn_the_unit(name)
    buyer, seller = buyer_and_seller()

    def score(unit):
        scorer = PriArTaScorer(**maps).fit(buyer * unit)
        return scorer.transform([seller * unit])

    expected = score(1)
    assert expected > 0.01
    np.testing.assert_allclose(score(scale), expected, rtol=1e-2)


@pytest.mark.parametrize("scale", [1e-300, 1e60, 1e300])
@pytest.mark.parametrize("max_norm", ["auto", 1.0])
class TestRowsOfExtremeScale:
    def test_of_a_buyer_are_refused(self, max_norm, scale):
        buyer, _ = buyer_and_seller()
        with pytest.raises(
            ValueError, match=r"X must give latent rows .*1e\+?-?\d+.* Got \d.*: scale"
        ):
            PriArTaScorer(max_norm=max_norm).fit(buyer * scale)

    def test_of_a_private_seller_have_finite_scores(self, max_norm, scale):
        buyer, seller = buyer_and_seller()
        scorer = PriArTaScorer(max_norm=max_norm, epsilon=0.8).fit(buyer)
        assert np.isfinite(scorer.transform([seller * scale])).all()

    def test_of_a_seller_without_noise_are_refused_if_they_overflow(
        self, max_norm, scale
    ):
        buyer, seller = buyer_and_seller()
        scorer = PriArTaScorer(max_norm=max_norm).fit(buyer)
        if scale < 1:
            assert np.isfinite(scorer.transform([seller * scale])).all()
            return
        with pytest.raises(ValueError, match=r"X must give latent rows .*1e\+50 away"):
            scorer.transform([seller * scale])


@pytest.mark.parametrize("axis", [None, 0])
def test_division_by_the_unit_is_exact(rng, axis):
    X = rng.normal(size=(50, 4)) * [1e-3, 1.0, 7.0, 1e9]
    unit = unit_of(X, axis)
    np.testing.assert_array_equal(unit * (X / unit).std(axis=0), X.std(axis=0))


def test_unit_of_zeros_is_one():
    assert unit_of(np.zeros(3)) == 1.0


def test_equal_rows_of_buyer_and_seller_have_a_score_of_zero():
    scorer = PriArTaScorer().fit(np.full((10, 2), 3.0))
    assert scorer.transform([np.full((5, 2), 3.0)]) == 0.0


@pytest.mark.parametrize("max_norm", [0.0, 1e-60, 1e60])
def test_radius_out_of_range_is_refused(max_norm):
    buyer, _ = buyer_and_seller()
    with pytest.raises(
        ValueError, match=r"'max_norm' parameter .* in the range \[1e-50, 1e\+50\]"
    ):
        PriArTaScorer(max_norm=max_norm).fit(buyer)
