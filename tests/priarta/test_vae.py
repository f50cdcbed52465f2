"""The latent map: its loss against quadrature, its outputs, and its export."""

import json

import numpy as np
import pytest
from scipy import stats

torch = pytest.importorskip("torch")

from skvalue.priarta import GaussianVAE, negative_elbo

FAST = {"n_epochs": 1, "batch_size": 64, "random_state": 0}


@pytest.mark.parametrize("beta", [1.0, 0.25])
def test_loss_is_that_of_densities(rng, beta):
    x, reconstruction, mean, log_variance = rng.normal(size=(4, 3, 2))
    constant = stats.norm.logpdf([0, 0]).sum() * 3
    error = constant - stats.norm(reconstruction, 1.0).logpdf(x).sum()

    # The divergence of every coordinate, by quadrature.
    z = np.linspace(-12, 12, 20_001)
    latent = stats.norm(mean[..., None], np.exp(0.5 * log_variance)[..., None])
    log_ratios = latent.logpdf(z) - stats.norm.logpdf(z)
    divergence = np.sum(latent.pdf(z) * log_ratios) * (z[1] - z[0])
    tensors = map(torch.from_numpy, (x, reconstruction, mean, log_variance))
    loss = negative_elbo(*tensors, beta)
    assert float(loss) == pytest.approx((error + beta * divergence) / 3, rel=1e-6)


@pytest.fixture(scope="module")
def plane():
    """Rows near a plane of ten dimensions, far from the origin."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1500, 2)) @ np.linalg.qr(rng.normal(size=(10, 2)))[0].T * 15
    return X + 0.1 * rng.normal(size=X.shape) + 100


@pytest.fixture(scope="module")
def trained(plane):
    return GaussianVAE(2, n_epochs=20, batch_size=100, random_state=0).fit(plane[:1000])


class TestTraining:
    def test_outputs_are_nearly_standard_normal(self, plane, trained):
        rows = trained.transform(plane)
        assert rows.shape == (1500, 2)
        assert rows.dtype == np.float64
        assert np.abs(rows.mean(axis=0)).max() < 0.3
        np.testing.assert_allclose(rows.std(axis=0), 1, atol=0.35)

    def test_outputs_are_coordinates_in_the_plane(self, plane, trained):
        rows = trained.transform(plane)
        design = np.column_stack([np.ones(1500), rows])
        coefficients = np.linalg.lstsq(design[:1000], plane[:1000], rcond=None)[0]
        residuals = plane[1000:] - design[1000:] @ coefficients
        assert residuals.var() < 0.1 * plane[1000:].var(axis=0).mean()

    def test_loss_decreases(self, trained):
        assert trained.loss_curve_[-1] < 0.7 * trained.loss_curve_[0]
        assert trained.n_iter_ == 20

    def test_output_columns_have_names(self, trained):
        names = list(trained.get_feature_names_out())
        assert names == ["gaussianvae0", "gaussianvae1"]

    def test_outputs_do_not_depend_on_unit_and_origin(self, plane):
        rows = GaussianVAE(3, **FAST).fit(plane).transform(plane)
        moved = 1e-3 * plane - 7
        np.testing.assert_allclose(
            GaussianVAE(3, **FAST).fit(moved).transform(moved),
            rows,
            rtol=1e-3,
            atol=1e-3,
        )


@pytest.fixture(scope="module")
def vae(plane):
    return GaussianVAE(3, **FAST).fit(plane)


class TestTransform:
    def test_output_of_a_row_does_not_depend_on_other_rows(self, plane, vae):
        rows = vae.transform(plane)
        np.testing.assert_allclose(vae.transform(plane[7:8]), rows[7:8], atol=1e-6)

    def test_outputs_are_deterministic(self, plane, vae):
        np.testing.assert_array_equal(vae.transform(plane), vae.transform(plane))

    def test_outputs_of_huge_rows_are_finite(self, plane, vae):
        assert np.isfinite(vae.transform(plane * 1e300)).all()


@pytest.fixture(scope="module")
def exported(plane):
    """A map, and its arrays and configuration."""
    vae = GaussianVAE(3, hidden_dim=5, **FAST).fit(plane)
    return vae, *vae.to_arrays()


class TestExport:
    def test_copy_has_the_same_outputs_and_configuration(self, plane, exported):
        vae, arrays, config = exported
        copy = GaussianVAE.from_arrays(arrays, json.loads(json.dumps(config)))
        np.testing.assert_allclose(
            copy.transform(plane), vae.transform(plane), atol=1e-6
        )
        assert copy.to_arrays()[1] == config

    def test_decoder_is_not_exported(self, exported):
        _, arrays, _ = exported
        assert not any(name.startswith("decoder") for name in arrays)

    def test_missing_field_of_the_configuration_is_refused(self, exported):
        _, arrays, _ = exported
        with pytest.raises(
            ValueError,
            match="a record of the fields hidden_dim, latent_dim, n_features. Got",
        ):
            GaussianVAE.from_arrays(arrays, {})

    @pytest.mark.parametrize(
        ("name", "value"),
        [("latent_dim", -1), ("hidden_dim", 2**40), ("n_features", 3.0)],
    )
    def test_invalid_size_is_refused(self, exported, name, value):
        _, arrays, config = exported
        with pytest.raises(
            ValueError, match=rf"config\['{name}'\] must be .* Got {value}"
        ):
            GaussianVAE.from_arrays(arrays, config | {name: value})

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            (
                "hidden_dim",
                6,
                "encoder.0.weight must be a float32 array of shape",
            ),
            ("n_features", 9, r"centre must be a float64 array of shape \(9\)"),
        ],
        ids=["hidden_dim", "n_features"],
    )
    def test_arrays_of_other_sizes_are_refused(self, exported, name, value, message):
        _, arrays, config = exported
        with pytest.raises(ValueError, match=message):
            GaussianVAE.from_arrays(arrays, config | {name: value})

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (
                {"scale": np.array([-1.0])},
                "scale must be of positive numbers. Got -1",
            ),
            ({"centre": np.full(10, np.nan)}, "centre must hold finite"),
        ],
        ids=["scale", "centre"],
    )
    def test_invalid_array_is_refused(self, exported, change, message):
        _, arrays, config = exported
        with pytest.raises(ValueError, match=message):
            GaussianVAE.from_arrays(arrays | change, config)

    def test_missing_array_is_refused(self, exported):
        _, arrays, config = exported
        arrays = {k: a for k, a in arrays.items() if k != "encoder.0.bias"}
        with pytest.raises(ValueError, match="0.bias.* is missing"):
            GaussianVAE.from_arrays(arrays, config)

    def test_huge_sizes_are_refused_before_memory_is_allocated(self):
        config = {"n_features": 1, "hidden_dim": 2**20, "latent_dim": 2**20}
        arrays = {"centre": np.zeros(1), "scale": np.ones(1)}
        with pytest.raises(ValueError, match="arrays must hold exactly"):
            GaussianVAE.from_arrays(arrays, config)


class TestErrors:
    def test_no_latent_dimension_is_refused(self, plane):
        with pytest.raises(ValueError, match="'latent_dim' parameter of GaussianVAE"):
            GaussianVAE(0).fit(plane)

    def test_single_row_is_refused(self, plane):
        with pytest.raises(ValueError, match="minimum of 2 is required"):
            GaussianVAE().fit(plane[:1])

    def test_rows_of_other_columns_are_refused(self, plane):
        vae = GaussianVAE(2, **FAST).fit(plane)
        with pytest.raises(
            ValueError, match="X has 3 features, but GaussianVAE is expecting 10"
        ):
            vae.transform(plane[:, :3])
