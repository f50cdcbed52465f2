"""The training loop that the representation and the latent map share."""

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from skvalue._utils.torch_device import seeded
from skvalue.priarta.maps import learning_rate_factor, train


class LineFit:
    """A network for a line through points, and the loop that trains it.

    `batches` are the rows of each step.
    """

    def __init__(self, n=40, seed=0, **options):
        rng = np.random.RandomState(seed)
        self.x = torch.from_numpy(rng.normal(size=(n, 1))).float()
        self.network = torch.nn.Linear(1, 1)
        torch.nn.init.zeros_(self.network.weight)
        torch.nn.init.zeros_(self.network.bias)
        self.batches = []
        options = {
            "n_epochs": 60,
            "batch_size": 10,
            "learning_rate": 0.3,
            "weight_decay": 0.0,
            "mixed_precision": False,
            **options,
        }
        self.losses = train(
            SimpleNamespace(**options), self.network, self.loss_of, n, rng, "cpu"
        )

    def loss_of(self, rows):
        self.batches.append(rows)
        x = self.x[rows]
        return (self.network(x) - 3 * x - 1).square().mean()


def test_network_learns_the_line():
    fit = LineFit()
    assert len(list(fit.losses)) == 60
    learned = [fit.network.weight.item(), fit.network.bias.item()]
    np.testing.assert_allclose(learned, [3, 1], atol=0.02)


def test_last_smaller_batch_is_left_out_and_differs_between_epochs():
    fit = LineFit(n=35, n_epochs=3)
    list(fit.losses)
    assert [len(rows) for rows in fit.batches] == [10] * 9
    for epoch in range(3):
        rows = torch.cat(fit.batches[3 * epoch : 3 * epoch + 3])
        assert len(rows.unique()) == 30
    assert len(torch.cat(fit.batches).unique()) > 30


def test_fewer_rows_than_a_batch_are_one_batch():
    fit = LineFit(n=7, n_epochs=1)
    list(fit.losses)
    assert [len(rows) for rows in fit.batches] == [7]


def test_seed_decides_the_losses():
    fits = [LineFit(seed=seed, n_epochs=5) for seed in (0, 0, 1)]
    losses = [list(fit.losses) for fit in fits]
    assert losses[0] == losses[1]
    assert losses[0] != losses[2]


def test_training_leaves_the_generator_of_torch_unchanged():
    fit = LineFit(n_epochs=5)
    before = torch.random.get_rng_state()
    list(fit.losses)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_seeded_context_starts_from_the_seed():
    with seeded(3):
        expected = torch.rand(2)
    with seeded(3):
        assert torch.equal(torch.rand(2), expected)


def test_divergence_names_the_learning_rate():
    fit = LineFit(learning_rate=1e30)
    with pytest.raises(
        RuntimeError, match=r"The loss was .* in epoch .* Lower learning_rate .1e"
    ):
        list(fit.losses)


def test_learning_rate_rises_for_a_tenth_of_the_steps_and_falls_to_zero():
    factors = [learning_rate_factor(step, 100) for step in range(101)]
    assert np.argmax(factors) in (9, 10)
    assert max(factors) == 1
    assert np.all(np.diff(factors[:10]) > 0)
    assert np.all(np.diff(factors[10:]) < 0)
    assert factors[-1] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("n_steps", [1, 2])
def test_learning_rate_of_few_steps_starts_at_its_maximum(n_steps):
    assert learning_rate_factor(0, n_steps) == 1
