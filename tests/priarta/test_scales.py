"""Rows of any size: what is learnt does not depend on their unit, or the error says
so."""

import numpy as np
import pytest

from skvalue import priarta
from skvalue.priarta import Identity, PriArTaScorer
from skvalue.priarta.maps import unit_of

SCALES = [1e-300, 1e60, 1e300]


def buyer_and_seller():
    X = np.random.default_rng(3).normal(size=(2, 200, 3)) + [[[0.0]], [[1.0]]]
    return X[0], X[1]


@pytest.mark.parametrize("scale", [1e-300, 1e160, 1e300])
@pytest.mark.parametrize("name", ["identity", "vae", "simclr"])
def test_maps_that_learn_the_unit(name, scale):
    maps = dict(representation=Identity(standardize=True))
    options = dict(device="cpu", random_state=0)
    if name != "identity":
        pytest.importorskip("torch")
    if name == "vae":
        maps = dict(latent=priarta.GaussianVAE(2, n_epochs=2, **options))
    elif name == "simclr":
        maps = dict(
            representation=priarta.SimCLR(projection_dim=3, n_epochs=1, **options)
        )
    buyer, seller = buyer_and_seller()
    expected, found = (
        PriArTaScorer(**maps).fit(buyer * unit).transform([seller * unit])
        for unit in (1, scale)
    )
    assert expected > 0.01
    np.testing.assert_allclose(found, expected, rtol=1e-2)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("max_norm", ["auto", 1.0])
def test_rows_that_moments_have_no_room_for(max_norm, scale):
    buyer, seller = buyer_and_seller()
    scorer = PriArTaScorer(max_norm=max_norm)
    with pytest.raises(
        ValueError, match=r"X must give latent rows .*1e\+?-?\d+.* Got \d.*: scale"
    ):
        scorer.fit(buyer * scale)
    # A seller's rows may be anything.
    assert np.isfinite(scorer.fit(buyer).transform([seller * scale])).all()


def test_the_unit_is_exact(rng):
    X = rng.normal(size=(50, 4)) * [1e-3, 1.0, 7.0, 1e9]
    for axis in (None, 0):
        unit = unit_of(X, axis)
        np.testing.assert_array_equal(unit * (X / unit).std(axis=0), X.std(axis=0))
    assert unit_of(np.zeros(3)) == 1.0


def test_rows_that_are_all_the_same():
    assert (
        PriArTaScorer().fit(np.full((10, 2), 3.0)).transform([np.full((5, 2), 3.0)])
        == 0.0
    )


@pytest.mark.parametrize("max_norm", [0.0, 1e-60, 1e60])
def test_radius(max_norm):
    with pytest.raises(
        ValueError, match=r"'max_norm' parameter .* in the range \[1e-50, 1e\+50\]"
    ):
        PriArTaScorer(max_norm=max_norm).fit(buyer_and_seller()[0])
