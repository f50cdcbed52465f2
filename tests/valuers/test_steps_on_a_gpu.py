"""Methods that train on a GPU do not wait for it at each step, by a simulated one."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from skvalue import GradientSemivalueValuer, InRunShapleyValuer, UnrolledValuer

from ..conftest import simulate_a_gpu

pytestmark = [
    pytest.mark.filterwarnings("ignore::skvalue.privacy.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning"),
]

WALK = {"n_permutations": 2, "learning_rate": 0.1, "random_state": 0}
RUN = {"learning_rate": 0.1, "random_state": 0}
NOISE = {"epsilon": 1.0, "noise_random_state": 0}
# Along averages of releases.
AVERAGED = {"noise": "correlated", "burn_in": 0.0, **WALK, **NOISE}


def walk(n_steps, **parameters):
    """A valuer of parties of three rows, and the parties: each is one step."""
    return GradientSemivalueValuer, parameters, np.arange(3 * n_steps) // 3


def run(n_steps, **parameters):
    """A valuer whose run has a number of steps."""
    return InRunShapleyValuer, parameters | {"n_steps": n_steps}, None


def training(n_steps, **parameters):
    """A valuer with as many epochs of one batch."""
    return UnrolledValuer, parameters | {"n_epochs": n_steps, "cv": 2}, None


# What is fitted for a number of steps.
CASES = {
    "walk": lambda n: walk(n, **WALK),
    "walk, clipped rows": lambda n: walk(n, clip=0.5, unit="example", **WALK),
    "walk, noise": lambda n: walk(n, noise="iid", **WALK, **NOISE),
    "walk, averaged noise": lambda n: walk(n, **AVERAGED),
    "walk, averaged noise on rows": lambda n: walk(n, unit="example", **AVERAGED),
    "run": lambda n: run(n, **RUN),
    "run, second order of batches": lambda n: run(n, order=2, batch_size=10, **RUN),
    "run, rate": lambda n: run(n, random_state=0, learning_rate="auto"),
    "run, noise": lambda n: run(n, **RUN, **NOISE),
    "run, noise and secret samples": lambda n: run(n, batch_size=10, **RUN, **NOISE),
    "training": lambda n: training(n, random_state=0),
    "training, AdamW": lambda n: training(n, optimizer="adamw", random_state=0),
}
# Those of many runs take some seconds.
SLOW = {"run, rate", "run, noise", "run, noise and secret samples"}
EACH_CASE = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else [])
        for name in CASES
    ],
)


@pytest.fixture
def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(5, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3)
    )


def fit(name, n_steps, network, device):
    make, parameters, groups = CASES[name](n_steps)
    rng = np.random.default_rng(0)
    n = 30 if groups is None else len(groups)
    X = rng.normal(size=(n, 5)).astype(np.float32)
    y = rng.integers(0, 3, n)
    valuer = make(network, device=device, **parameters)
    return valuer.fit(X, y, X_val=X[:8] + 0.1, y_val=y[:8], groups=groups)


@EACH_CASE
def test_waits_do_not_grow_with_the_steps(name, network, monkeypatch):
    simulated_gpu = simulate_a_gpu(monkeypatch)
    n_waits = []
    for n_steps in (3, 6):
        with simulated_gpu.count_waits() as waits:
            fit(name, n_steps, network, "cuda")
        n_waits.append(len(waits))
    # Errors of averaged noise come from fewer walks where these are longer.
    assert 0 < n_waits[1] <= n_waits[0]


# What a fitted valuer is asked for.
QUESTIONS = {
    "values of new rows": lambda valuer, X, y: valuer.score_samples(X[:5] * 1.5, y[:5]),
    "contributions of points": lambda valuer, X, y: valuer.contributions(1),
    "errors of the points": lambda valuer, X, y: valuer.validation_error_,
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    "name",
    ["run", pytest.param("run, second order of batches", marks=pytest.mark.slow)],
)
def test_waits_after_a_fit_do_not_grow_with_its_steps(
    name, question, network, monkeypatch
):
    simulated_gpu = simulate_a_gpu(monkeypatch)
    n_waits = []
    for n_steps in (3, 6):
        valuer = fit(name, n_steps, network, "cuda")
        # The same rows, whatever the number of steps.
        rng = np.random.default_rng(1)
        X = rng.normal(size=(9, 5)).astype(np.float32)
        with simulated_gpu.count_waits() as waits:
            QUESTIONS[question](valuer, X, rng.integers(0, 3, 9))
        n_waits.append(len(waits))
    assert n_waits[1] == n_waits[0]


@EACH_CASE
def test_values_are_those_of_the_cpu(name, network, gpu):
    on_gpu = fit(name, 3, network, "cuda")
    on_cpu = fit(name, 3, network, "cpu")
    np.testing.assert_allclose(on_gpu.values_, on_cpu.values_, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("noise", ["iid", "correlated"])
def test_parties_whose_mean_is_not_finite_count_on_a_gpu_as_on_the_cpu(
    noise, network, gpu
):
    """Row by row, which the GPU does in a second pass."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 5)).astype(np.float32)
    y = rng.integers(0, 3, 30)
    X[4] = 1e30
    values = {}
    for device in ("cpu", "cuda"):
        valuer = GradientSemivalueValuer(
            network, noise=noise, burn_in=0.0, device=device, **WALK, **NOISE
        )
        valuer.fit(X, y, X_val=X[:3], y_val=y[:3], groups=np.arange(30) // 3)
        values[device] = valuer.values_
    assert np.isfinite(values["cpu"]).all()
    np.testing.assert_allclose(values["cuda"], values["cpu"], rtol=1e-4, atol=1e-7)
