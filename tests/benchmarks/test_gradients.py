"""Private gradient values against their utilities alone, and against single steps."""

import numpy as np
import pytest

from skvalue import GradientSemivalueValuer

from .compare import convolution_of, diabetes

pytestmark = pytest.mark.bench

# Of the paper's Table 8, which took 519 to 531 s on its GPU.
N = 300
N_PERMUTATIONS = 360
SETTING = f"n={N}, k={N_PERMUTATIONS}"


@pytest.fixture(scope="module")
def problem():
    return diabetes()


def make_private_valuer(noise):
    return GradientSemivalueValuer(
        "logistic",
        n_permutations=N_PERMUTATIONS,
        noise_multiplier=0.05,
        noise=noise,
        burn_in=0.0,
        learning_rate=0.05,
    )


@pytest.mark.parametrize("noise", ["iid", "correlated"])
def test_private_fit_costs_no_more_than_its_utilities(noise, problem, ratio):
    X_val = np.column_stack([problem["X_val"], np.ones(len(problem["X_val"]))])
    signs = np.where(problem["y_val"], 1, -1)
    points = X_val * signs[:, None]
    thetas = np.random.default_rng(0).standard_normal(
        (N * N_PERMUTATIONS, points.shape[1])
    )

    def utilities():
        margins = thetas @ points.T
        losses = np.maximum(-margins, 0) + np.log1p(np.exp(-np.abs(margins)))
        return -losses.mean(axis=1)

    ratio(
        f"private logistic values ({noise}) over their utilities as one product, "
        f"{SETTING}",
        lambda: make_private_valuer(noise).fit(**problem),
        utilities,
        1.0,
    )


def loop_of_a_module(torch, X, y, X_val, y_val, *, deviation, n_permutations):
    """The paper's model, a linear layer with an output a class, trained in torch."""
    loss = torch.nn.functional.cross_entropy
    X = torch.from_numpy(X.astype(np.float32))
    X_val = torch.from_numpy(X_val.astype(np.float32))
    y = torch.from_numpy(y)
    y_val = torch.from_numpy(y_val)

    def utility(model):
        with torch.no_grad():
            return -loss(model(X_val), y_val).item()

    def loop():
        values = np.zeros(N)
        for _ in range(n_permutations):
            model = torch.nn.Linear(X.shape[1], 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
            before = utility(model)
            for j in torch.randperm(N).tolist():
                optimizer.zero_grad()
                loss(model(X[j : j + 1]), y[j : j + 1]).backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                for parameter in model.parameters():
                    parameter.grad += deviation * torch.randn_like(parameter)
                optimizer.step()
                after = utility(model)
                values[j] += after - before
                before = after
        return values

    return loop


def loop_of_a_tensor(torch, X, y, X_val, y_val, *, deviation, n_permutations):
    """The cheapest step in torch: one tensor, no module, no optimizer."""
    loss = torch.nn.functional.binary_cross_entropy_with_logits
    X = torch.from_numpy(np.column_stack([X, np.ones(len(X))]))
    X_val = torch.from_numpy(np.column_stack([X_val, np.ones(len(X_val))]))
    y = torch.from_numpy(y.astype(float))
    y_val = torch.from_numpy(y_val.astype(float))

    def loop():
        values = np.zeros(N)
        for _ in range(n_permutations):
            theta = torch.zeros(X.shape[1], dtype=torch.float64, requires_grad=True)
            before = -loss(X_val @ theta.detach(), y_val).item()
            for j in torch.randperm(N).tolist():
                (gradient,) = torch.autograd.grad(loss(X[j] @ theta, y[j]), theta)
                gradient = gradient / max(1.0, gradient.norm().item())
                noise = torch.randn(X.shape[1], dtype=torch.float64)
                gradient = gradient + deviation * noise
                theta = (theta.detach() - 0.05 * gradient).requires_grad_()
                after = -loss(X_val @ theta.detach(), y_val).item()
                values[j] += after - before
                before = after
        return values

    return loop


# The loops average nothing, as "iid" does; "correlated" does more than they do.
@pytest.mark.parametrize(
    ("make_loop", "noise", "speed_up"),
    [
        (loop_of_a_module, "correlated", 100),
        (loop_of_a_tensor, "correlated", 75),
        (loop_of_a_tensor, "iid", 75),
    ],
)
def test_private_fit_is_faster_than_a_loop_of_steps(
    make_loop, noise, speed_up, problem, ratio
):
    torch = pytest.importorskip("torch")
    n_looped = 2
    loop = make_loop(
        torch,
        **problem,
        deviation=N_PERMUTATIONS**0.5 * 0.05,
        n_permutations=n_looped,
    )
    name = make_loop.__name__.replace("_", " ")
    measured = ratio(
        f"private logistic values ({noise}), {SETTING}, over two permutations in a "
        f"torch {name}",
        lambda: make_private_valuer(noise).fit(**problem),
        loop,
        N_PERMUTATIONS / n_looped / speed_up,
    )
    print(f"{N_PERMUTATIONS / n_looped / measured:.0f} times as fast as the {name}")


def test_utilities_of_a_network_cost_little_more_together_than_one_by_one(ratio):
    torch = pytest.importorskip("torch")
    from skvalue.derivatives import TorchGradientModel

    network = convolution_of(torch.nn, 16 * 169)
    rng = np.random.default_rng(0)
    X = rng.random((100, 1, 28, 28), dtype=np.float32)
    y = np.arange(100) % 10
    model = TorchGradientModel(network, None, X, y, y, X, y, clip=None, device="cpu")
    thetas = np.array([model.start(rng) for _ in range(20)])
    ratio(
        "utilities of 20 parameters of a convolution together, over one by one, 100 "
        "images",
        lambda: model.utilities(thetas),
        lambda: [model.utilities(theta[None]) for theta in thetas],
        1.3,
    )
