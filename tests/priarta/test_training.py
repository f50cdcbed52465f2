"""The training loop that the representation and the latent map share."""

from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from skvalue._utils.torch_device import seeded
from skvalue.priarta.maps import learning_rate_factor, train


def training(n=40, seed=0, **options):
    """A line through points, and the loop that fits it."""
    rng = np.random.RandomState(seed)
    x = torch.from_numpy(rng.normal(size=(n, 1))).float()
    network = torch.nn.Linear(1, 1)
    torch.nn.init.zeros_(network.weight)
    torch.nn.init.zeros_(network.bias)
    seen = []

    def loss_of(rows):
        seen.append(rows)
        return (network(x[rows]) - 3 * x[rows] - 1).square().mean()

    defaults = dict(n_epochs=60, batch_size=10, learning_rate=0.3, weight_decay=0.0)
    options = SimpleNamespace(**{**defaults, "mixed_precision": False, **options})
    return train(options, network, loss_of, n, rng, "cpu"), network, seen


def test_it_learns():
    loop, network, _ = training()
    assert len(list(loop)) == 60
    np.testing.assert_allclose(
        [network.weight.item(), network.bias.item()], [3, 1], atol=0.02
    )


def test_batches():
    loop, _, seen = training(n=35, n_epochs=3)
    list(loop)
    assert [len(rows) for rows in seen] == [
        10
    ] * 9  # 5 rows of 35 sit out, others each epoch
    for epoch in range(3):
        assert len(torch.cat(seen[3 * epoch : 3 * epoch + 3]).unique()) == 30
    assert len(torch.cat(seen).unique()) > 30
    loop, _, seen = training(n=7, n_epochs=1)
    list(loop)
    assert [len(rows) for rows in seen] == [7]


def test_the_seed_decides_and_torch_is_left_alone():
    loops = [training(seed=seed, n_epochs=5)[0] for seed in (0, 0, 1)]
    before = torch.random.get_rng_state()
    losses = [list(loop) for loop in loops]
    assert losses[0] == losses[1]
    assert losses[0] != losses[2]
    assert torch.equal(torch.random.get_rng_state(), before)
    with seeded(3):
        first = torch.rand(2)
    with seeded(3):
        assert torch.equal(torch.rand(2), first)


def test_divergence():
    loop, _, _ = training(learning_rate=1e30)
    with pytest.raises(
        RuntimeError, match=r"The loss was .* in epoch .* Lower learning_rate .1e"
    ):
        list(loop)


def test_learning_rate():
    factors = [learning_rate_factor(step, 100) for step in range(101)]
    assert np.argmax(factors) in (9, 10)
    assert max(factors) == 1
    assert np.all(np.diff(factors[:10]) > 0)
    assert np.all(np.diff(factors[10:]) < 0)
    assert factors[-1] == pytest.approx(0, abs=1e-12)
    assert [learning_rate_factor(0, n) for n in (1, 2)] == [1, 1]
