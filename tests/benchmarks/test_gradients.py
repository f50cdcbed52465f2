"""Private gradient values against their utilities alone, and against a loop of single
steps."""

import numpy as np
import pytest

from skvalue import GradientSemivalueValuer

from .compare import convolution_of, diabetes

pytestmark = pytest.mark.bench

N, PERMUTATIONS = 300, 360  # of the paper's Table 8, 519 to 531 s on its GPU


@pytest.fixture(scope="module")
def problem():
    return diabetes()


def private(noise):
    return GradientSemivalueValuer(
        "logistic", n_permutations=PERMUTATIONS, noise_multiplier=0.05, noise=noise, burn_in=0.0,
        learning_rate=0.05,
    )  # fmt: skip


@pytest.mark.parametrize("noise", ["iid", "correlated"])
def test_a_private_fit_against_its_utilities_alone(noise, problem, ratio):
    X_val, y_val = problem["X_val"], problem["y_val"]
    thetas = np.random.default_rng(0).standard_normal(
        (N * PERMUTATIONS, X_val.shape[1] + 1)
    )
    test = (
        np.column_stack([X_val, np.ones(len(X_val))]) * np.where(y_val, 1, -1)[:, None]
    )

    def utilities():
        z = thetas @ test.T
        return -(np.maximum(-z, 0) + np.log1p(np.exp(-np.abs(z)))).mean(axis=1)

    what = f"private logistic values ({noise}) over their utilities as one product, n=300, k=360"
    ratio(what, lambda: private(noise).fit(**problem), utilities, 1.0)


def loop_of_a_module(torch, X, y, X_val, y_val, deviation, looped):
    """The paper's model, a linear layer with an output a class, as it is trained in
    torch."""
    loss = torch.nn.functional.cross_entropy
    X, X_val = (torch.from_numpy(rows.astype(np.float32)) for rows in (X, X_val))
    y, y_val = torch.from_numpy(y), torch.from_numpy(y_val)

    def utility(model):
        with torch.no_grad():
            return -loss(model(X_val), y_val).item()

    def loop():
        values = np.zeros(N)
        for _ in range(looped):
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


def loop_of_a_tensor(torch, X, y, X_val, y_val, deviation, looped):
    """The least that a step can be in torch: one tensor, no module, no optimizer."""
    loss = torch.nn.functional.binary_cross_entropy_with_logits
    X, X_val = (
        torch.from_numpy(np.column_stack([x, np.ones(len(x))])) for x in (X, X_val)
    )
    y, y_val = (torch.from_numpy(codes.astype(float)) for codes in (y, y_val))

    def loop():
        values = np.zeros(N)
        for _ in range(looped):
            theta = torch.zeros(X.shape[1], dtype=torch.float64, requires_grad=True)
            before = -loss(X_val @ theta.detach(), y_val).item()
            for j in torch.randperm(N).tolist():
                (gradient,) = torch.autograd.grad(loss(X[j] @ theta, y[j]), theta)
                gradient = gradient / max(1.0, gradient.norm().item())
                gradient = gradient + deviation * torch.randn(
                    X.shape[1], dtype=torch.float64
                )
                theta = (theta.detach() - 0.05 * gradient).requires_grad_()
                after = -loss(X_val @ theta.detach(), y_val).item()
                values[j] += after - before
                before = after
        return values

    return loop


# The loops average nothing, as "iid" does; "correlated" does more than they do.
@pytest.mark.parametrize(
    ("make", "noise", "times"),
    [
        (loop_of_a_module, "correlated", 100),
        (loop_of_a_tensor, "correlated", 75),
        (loop_of_a_tensor, "iid", 75),
    ],
)
def test_a_private_fit_against_a_loop_of_steps(make, noise, times, problem, ratio):
    torch = pytest.importorskip("torch")
    looped = 2
    loop = make(torch, **problem, deviation=PERMUTATIONS**0.5 * 0.05, looped=looped)
    limit = PERMUTATIONS / looped / times
    what = make.__name__.replace("_", " ")
    measured = ratio(
        f"private logistic values ({noise}), n=300, k=360, over two permutations in a torch {what}",
        lambda: private(noise).fit(**problem),
        loop,
        limit,
    )
    print(f"{PERMUTATIONS / looped / measured:.0f} times as fast as the {what}")


def test_utilities_of_a_network_together_against_one_by_one(ratio):
    torch = pytest.importorskip("torch")
    from skvalue.derivatives import TorchGradientModel

    network = convolution_of(torch.nn, 16 * 169)
    rng = np.random.default_rng(0)
    X, y = rng.random((100, 1, 28, 28), dtype=np.float32), np.arange(100) % 10
    model = TorchGradientModel(network, None, X, y, y, X, y, clip=None, device="cpu")
    thetas = np.array([model.start(rng) for _ in range(20)])
    ratio(
        "utilities of 20 parameters of a convolution together, over one by one, 100 images",
        lambda: model.utilities(thetas),
        lambda: [model.utilities(theta[None]) for theta in thetas],
        1.3,
    )
