"""Do derivatives through training predict what retraining without some rows does?

A network of one hidden layer, 0.11 million parameters, is trained on 5,000 images of
MNIST, averaged to 14 x 14 pixels, a tenth of the labels wrong. LDS is the linear
datamodeling score: the Spearman correlation, over random subsets of removed rows, of
the sum of their values with the decrease of the utility (minus the mean loss at 1,000
other images) when the network is trained again without them, from the same start and
with the same batches. The cost is the processor time of all values, the training
included, in units of the same training by torch's own optimiser: first with the working
memory of scikit-learn's default, then with states kept every sqrt(T) of T steps. Memory
is the rise of the most resident memory of a process.

    python examples/reproductions/unrolled_lds.py --data FOLDER

FOLDER holds mnist.npz, with arrays X (images of 28 x 28 pixels), y and split (1 for
test images).
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import process_time

import numpy as np
from scipy.stats import spearmanr
from sklearn import config_context

from skvalue.datasets import flip_labels
from skvalue.derivatives import TorchRowModel, Utility
from skvalue.derivatives.optimizers import Optimizer
from skvalue.derivatives.unrolled import draw_batches, train, unrolled_derivatives
from skvalue.inspection import noisy_label_auc

FRACTIONS = (0.05, 0.2, 0.5)
ACTIVATIONS = {"smooth (SiLU)": "SiLU", "ReLU": "ReLU"}


def images(folder, n, n_val):
    """Images averaged to 14 x 14 and standardised, labels, and the same of validation
    points."""
    data = np.load(folder / "mnist.npz", allow_pickle=False)
    X = data["X"].reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4), dtype=np.float64)
    X = X.reshape(len(X), -1)
    X = (X - X.mean()) / X.std()
    y = data["y"].astype(np.int64)
    rows, points = (
        np.flatnonzero(data["split"] == s)[:m] for s, m in [(0, n), (1, n_val)]
    )
    return X[rows], y[rows], X[points], y[points]


def network(activation, n_features, hidden, n_classes):
    """A network of one hidden layer, which is the same at every call."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    act = getattr(nn, activation)
    return nn.Sequential(
        nn.Linear(n_features, hidden), act(), nn.Linear(hidden, n_classes)
    )


def seconds_of_torch(module, how, X, y, batches):
    """Processor time of the same training by torch's own optimiser and module."""
    import torch

    optimizer = torch.optim.SGD(module.parameters(), how.learning_rate, how.momentum)
    X = torch.tensor(X, dtype=torch.float32)
    y = torch.tensor(y)
    start = process_time()
    for rows in map(torch.as_tensor, batches):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(module(X[rows]), y[rows]).backward()
        optimizer.step()
    return process_time() - start


def score(activation, X, y, X_val, y_val, how, args, rng):
    """LDS at each fraction of removed rows, AUROC of wrong labels, and the cost."""
    y_given, wrong = flip_labels(y, 0.1, random_state=0)
    module = network(activation, X.shape[1], args.hidden, 10)
    model = TorchRowModel(module, None, X, start="given", device="cpu")
    rows = model.rows(X, y_given)
    weights = np.full(len(X_val), 1 / len(X_val))
    utility = Utility(model, model.rows(X_val, y_val), weights)
    batches = draw_batches(len(X), args.batch_size, args.epochs, rng)
    theta = model.parameters(model.start(None))
    times = []
    for _ in range(args.timings):
        times.append([seconds_of_torch(module, how, X, y_given, batches)])
        for working_memory in (1, 1024):  # MiB: less than a step, and the default
            start = process_time()
            with config_context(working_memory=working_memory):
                values, end = unrolled_derivatives(
                    model, rows, theta, batches, how, utility.gradient
                )
            times[-1].append(process_time() - start)
    full = -utility.value(end)
    theirs, roots, default = np.min(times, axis=0)
    found = {
        "loss": full,
        "auroc": noisy_label_auc(values, wrong),
        "roots": roots / theirs,
        "default": default / theirs,
        "seconds": theirs,
        "steps": len(batches),
        "parameters": len(theta),
    }
    for fraction in FRACTIONS:
        sums = []
        changes = []
        for _ in range(args.subsets):
            removed = rng.choice(len(X), round(fraction * len(X)), replace=False)
            kept = np.ones(len(X))
            kept[removed] = 0
            without = -utility.value(train(model, rows, theta, batches, how, kept))
            sums.append(values[removed].sum())
            changes.append(without - full)
        found[fraction] = spearmanr(sums, changes)[0]
    return found


def most_resident():
    """Most resident memory of this process in MB (Linux only); unlike `getrusage`,
    since `exec`."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def memory(n_steps, hidden, batch_size=20):
    """MB by which a process grows for derivatives, beyond those of two steps."""
    import torch

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 196))
    y = np.arange(1000) % 10
    model = TorchRowModel(
        network("SiLU", 196, hidden, 10), None, X, start="given", device="cpu"
    )
    theta = model.parameters(model.start(None))
    rows = model.rows(X, y)
    how = Optimizer("sgd", 0.1)
    grown = []
    batches = draw_batches(1000, batch_size, n_steps, rng)[:n_steps]
    with config_context(working_memory=0):
        for steps in (batches[:2], batches):
            unrolled_derivatives(model, rows, theta, steps, how, lambda t: t)
            grown.append(most_resident())
    return grown[1] - grown[0]


def main(arguments=None):
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--momentum", type=float, default=0.0)
    parser.add_argument("--subsets", type=int, default=30)
    parser.add_argument("--timings", type=int, default=2)
    parser.add_argument("--memory", type=int, nargs="*", default=[100, 400, 1600])
    parser.add_argument("--activations", nargs="+", default=list(ACTIVATIONS))
    args = parser.parse_args(arguments)
    import torch

    torch.set_num_threads(1)
    X, y, X_val, y_val = images(args.data, args.rows, args.points)
    how = Optimizer("sgd", args.learning_rate, args.momentum)
    print(
        "| activation | LDS at "
        + " | ".join(f"{f:.0%}" for f in FRACTIONS)
        + " removed | AUROC of wrong labels | cost | cost at sqrt(T) | loss |"
    )
    print("|---" * (len(FRACTIONS) + 5) + "|")
    for name in args.activations:
        found = score(
            ACTIVATIONS.get(name, name),
            X,
            y,
            X_val,
            y_val,
            how,
            args,
            np.random.default_rng(0),
        )
        costs = (f"{found[key]:.1f}" for key in ("default", "roots"))
        cells = [f"{found[fraction]:.2f}" for fraction in FRACTIONS]
        cells += [f"{found['auroc']:.2f}", *costs, f"{found['loss']:.3f}"]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    print(
        f"{found['parameters']:,} parameters, {found['steps']} steps, a training of "
        f"{found['seconds']:.1f} s"
    )
    for n_steps in args.memory:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            grown = pool.submit(memory, n_steps, args.hidden).result()
        print(f"{n_steps} steps of 20 rows, states at every root: {grown:.0f} MB")


if __name__ == "__main__":
    main()
