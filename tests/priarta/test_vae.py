"""The latent map: its loss against quadrature, what it keeps, and how it travels."""

import json

import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch")

from skvalue.priarta import GaussianVAE, negative_elbo

SMALL = {"n_epochs": 1, "batch_size": 64, "random_state": 0}


def test_the_loss_is_that_of_densities(rng):
    x, out, mean, log_variance = rng.normal(size=(4, 3, 2))
    error = stats.norm.logpdf([0, 0]).sum() * 3 - stats.norm(out, 1.0).logpdf(x).sum()
    z, deviation = np.linspace(-12, 12, 20_001), np.exp(0.5 * log_variance)
    own = stats.norm.pdf(z, mean[..., None], deviation[..., None])
    ratio = stats.norm.logpdf(
        z, mean[..., None], deviation[..., None]
    ) - stats.norm.logpdf(z)
    divergence = np.sum(own * ratio) * (z[1] - z[0])
    for beta in (1.0, 0.25):
        loss = negative_elbo(*map(torch.from_numpy, (x, out, mean, log_variance)), beta)
        assert float(loss) == pytest.approx((error + beta * divergence) / 3, rel=1e-6)


@pytest.fixture(scope="module")
def plane():
    """Rows near a plane of ten dimensions, far from the origin."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1500, 2)) @ np.linalg.qr(rng.normal(size=(10, 2)))[0].T * 15
    return X + 0.1 * rng.normal(size=X.shape) + 100


def test_it_finds_the_plane_and_gives_it_a_nearly_standard_distribution(plane):
    vae = GaussianVAE(2, n_epochs=20, batch_size=100, random_state=0).fit(plane[:1000])
    rows = vae.transform(plane)
    assert rows.shape == (1500, 2)
    assert rows.dtype == np.float64
    assert np.abs(rows.mean(axis=0)).max() < 0.3
    np.testing.assert_allclose(rows.std(axis=0), 1, atol=0.35)
    ones = np.column_stack([np.ones(1000), rows[:1000]])
    line = np.linalg.lstsq(ones, plane[:1000], rcond=None)[0]
    rest = plane[1000:] - np.column_stack([np.ones(500), rows[1000:]]) @ line
    assert rest.var() < 0.1 * plane[1000:].var(axis=0).mean()
    assert vae.loss_curve_[-1] < 0.7 * vae.loss_curve_[0]
    assert vae.n_iter_ == 20
    assert list(vae.get_feature_names_out()) == ["gaussianvae0", "gaussianvae1"]


def test_units_and_origin_of_the_rows_do_not_matter(plane):
    rows = GaussianVAE(3, **SMALL).fit(plane).transform(plane)
    moved = 1e-3 * plane - 7
    np.testing.assert_allclose(
        GaussianVAE(3, **SMALL).fit(moved).transform(moved), rows, rtol=1e-3, atol=1e-3
    )


def test_a_row_depends_on_itself_alone(plane):
    vae = GaussianVAE(3, **SMALL).fit(plane)
    rows = vae.transform(plane)
    np.testing.assert_allclose(vae.transform(plane[7:8]), rows[7:8], atol=1e-6)
    np.testing.assert_array_equal(vae.transform(plane), rows)
    assert np.isfinite(vae.transform(plane * 1e300)).all()


def test_it_travels(plane):
    vae = GaussianVAE(3, hidden_dim=5, **SMALL).fit(plane)
    arrays, config = vae.to_arrays()
    assert not any(name.startswith("decoder") for name in arrays)
    copy = GaussianVAE.from_arrays(arrays, json.loads(json.dumps(config)))
    np.testing.assert_allclose(copy.transform(plane), vae.transform(plane), atol=1e-6)
    assert copy.to_arrays()[1] == config


def test_an_untrusted_folder_is_checked(plane):
    arrays, config = GaussianVAE(3, hidden_dim=5, **SMALL).fit(plane).to_arrays()

    def refuses(match, arrays=arrays, config=config):
        with pytest.raises(ValueError, match=match):
            GaussianVAE.from_arrays(arrays, config)

    refuses("a record of the fields hidden_dim, latent_dim, n_features. Got", config={})
    for name, value in (("latent_dim", -1), ("hidden_dim", 2**40), ("n_features", 3.0)):
        refuses(
            rf"config\['{name}'\] must be .* Got {value}", config=config | {name: value}
        )
    refuses(
        "encoder.0.weight must be a float32 array of shape",
        config=config | {"hidden_dim": 6},
    )
    refuses(
        r"centre must be a float64 array of shape \(9\)",
        config=config | {"n_features": 9},
    )
    refuses(
        "scale must be of positive numbers. Got -1",
        arrays | {"scale": np.array([-1.0])},
    )
    refuses("centre must hold finite", arrays | {"centre": arrays["centre"] * np.nan})
    refuses(
        "0.bias.* is missing",
        {k: a for k, a in arrays.items() if k != "encoder.0.bias"},
    )
    sizes = {"n_features": 1, "hidden_dim": 2**20, "latent_dim": 2**20}
    refuses(
        "arrays must hold exactly", {"centre": np.zeros(1), "scale": np.ones(1)}, sizes
    )


def test_errors(plane):
    with pytest.raises(ValueError, match="'latent_dim' parameter of GaussianVAE"):
        GaussianVAE(0).fit(plane)
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        GaussianVAE().fit(plane[:1])
    with pytest.raises(
        ValueError, match="X has 3 features, but GaussianVAE is expecting 10"
    ):
        GaussianVAE(2, **SMALL).fit(plane).transform(plane[:, :3])
