"""
Influence by skvalue and by other libraries
===========================================

The influence of all rows on all validation points of one logistic regression, by
skvalue, pyinfluence, pyDVL and dattri: each in a process of its own, which may be of
another environment, with its documented call and float64. The model has no intercept,
because dattri and pyDVL add the penalty to all coefficients. Printed are the largest
difference from skvalue's matrix, relative to its largest entry; CPU seconds of the
call, median and quartiles of eleven after a first one, and their ratio to skvalue's;
and the linear datamodeling score (LDS) of each matrix, mean of the points.

    python other_libraries_influence.py --with pydvl=pydvl/bin/python

A library that is not there is left out, and a line says so.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from other_libraries_processes import stamp
from sklearn.linear_model import LogisticRegression

LIBRARIES = ["skvalue", "pyinfluence", "pydvl", "dattri"]
N_CALLS = 11


def by_skvalue(p, model):
    from skvalue.derivatives import Hessian, linear_model, row_products

    def work():
        found = linear_model(model, p["X"], p["y"])
        points = found.design(p["X_val"])
        slopes = found.loss.gradient(points @ found.theta, p["y_val"])
        return row_products(
            found, Hessian(found).solve(slopes[:, :, None] * points[:, None])
        )

    return work


def by_pyinfluence(p, model):
    from pyinfluence import InfluenceFunctions

    attributor = InfluenceFunctions(mode="loss", damping=0.0)
    return lambda: attributor.fit(model, p["X"], p["y"]).explain(p["X_val"], p["y_val"])


def torch_model(p, model):
    """A linear layer with the coefficients, and tensors of rows, labels and points."""
    import torch

    layer = torch.nn.Linear(p["X"].shape[1], 1, bias=False).double()
    layer.load_state_dict({"weight": torch.tensor(model.coef_)})
    pairs = [(p["X"], p["y"]), (p["X_val"], p["y_val"])]
    return layer, [
        (torch.tensor(X), torch.tensor(y[:, None]).double()) for X, y in pairs
    ]


def by_pydvl(p, model):
    import torch
    from pydvl.influence.torch import DirectInfluence
    from torch.utils.data import DataLoader, TensorDataset

    layer, (rows, points) = torch_model(p, model)
    n = len(p["y"])
    loss = torch.nn.functional.binary_cross_entropy_with_logits

    def work():
        influence = DirectInfluence(layer, loss, regularization=1 / (model.C * n))
        influence = influence.fit(DataLoader(TensorDataset(*rows), batch_size=n))
        return influence.influences(*points, *rows).detach().numpy() / n

    return work


def by_dattri(p, model):
    import torch
    from dattri.algorithm.influence_function import IFAttributorExplicit
    from dattri.task import AttributionTask
    from torch.utils.data import DataLoader, TensorDataset

    layer, (rows, points) = torch_model(p, model)
    n = len(p["y"])
    torch.set_default_dtype(torch.float64)  # of the matrix that dattri fills

    def loss(params, data):
        X, y = data
        decisions = torch.func.functional_call(layer, params, X)
        return torch.nn.functional.binary_cross_entropy_with_logits(decisions, y)

    def work():
        task = AttributionTask(
            loss_func=loss, model=layer, checkpoints=layer.state_dict()
        )
        attributor = IFAttributorExplicit(task, regularization=1 / (model.C * n))
        loaders = [
            DataLoader(TensorDataset(*part), batch_size=len(part[0]))
            for part in (rows, points)
        ]
        attributor.cache(loaders[0])
        return attributor.attribute(*loaders).T.detach().numpy() / n

    return work


BY = dict(zip(LIBRARIES, [by_skvalue, by_pyinfluence, by_pydvl, by_dattri]))


def work(name, folder):
    """In the process of a library: write its matrix, its version and the seconds of
    eleven calls."""
    from importlib.metadata import version

    warnings.simplefilter("ignore")
    p = dict(np.load(folder / "problem.npz"))
    model = LogisticRegression(C=float(p["C"]), fit_intercept=False)
    model.classes_ = np.arange(2)
    model.coef_ = p["coef"]
    model.intercept_ = np.zeros(1)
    model.n_features_in_ = p["X"].shape[1]
    call = BY[name](p, model)
    call()
    seconds = []
    for _ in range(N_CALLS):
        start = time.process_time()
        matrix = np.asarray(call())
        seconds.append(time.process_time() - start)
    np.save(folder / f"{name}.npy", matrix)
    (folder / f"{name}.json").write_text(json.dumps([version(name), seconds]))


def start(name, python, folder):
    """Run `work` in a process; the line that says why there is no matrix, or None."""
    root = Path(find_spec("skvalue").origin).parents[1]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if name == "skvalue":
        environment["PYTHONPATH"] = str(root)
    command = [python, __file__, "--of", name, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"code {done.returncode}"])[-1]
    return None


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--of", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument(
        "--with",
        dest="named",
        metavar="NAME=PYTHON",
        action="append",
        default=[],
        help="the interpreter of the environment that holds a library",
    )
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument(
        "--subsets", type=int, default=50, help="removed subsets of the LDS"
    )
    args = parser.parse_args(arguments)
    if args.of:
        return work(args.of[0], Path(args.of[1]))
    from skvalue.inspection import linear_datamodeling_score

    pythons = dict(named.split("=", 1) for named in args.named)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(args.rows + args.points, args.columns))
    y = (X @ rng.normal(size=args.columns) / 2 + rng.logistic(size=len(X)) > 0).astype(
        int
    )
    data = X[: args.rows], y[: args.rows], X[args.rows :], y[args.rows :]
    model = LogisticRegression(fit_intercept=False, tol=1e-10, solver="newton-cholesky")
    coef = model.fit(*data[:2]).coef_
    print(stamp())
    print(
        f"{args.rows} rows of {args.columns} columns, {args.points} validation points\n"
    )
    print(
        f"{'library':12}{'version':>10}{'difference':>12}{'CPU s':>8}"
        f"{'quartiles':>18}{'ratio':>8}{'LDS':>7}"
    )
    ours = None
    with tempfile.TemporaryDirectory() as folder:
        named = dict(zip(["X", "y", "X_val", "y_val"], data), coef=coef, C=model.C)
        np.savez(Path(folder) / "problem.npz", **named)
        for name in LIBRARIES:
            why = start(name, pythons.get(name, sys.executable), folder)
            if why is not None:
                print(f"{name}: left out. {why}")
                continue
            matrix = np.load(Path(folder) / f"{name}.npy")
            version, seconds = json.loads((Path(folder) / f"{name}.json").read_text())
            low, median, high = np.quantile(seconds, [0.25, 0.5, 0.75])
            ours = (matrix, median) if ours is None else ours
            difference = np.abs(matrix - ours[0]).max() / np.abs(ours[0]).max()
            score = linear_datamodeling_score(
                matrix, model, *data, n_subsets=args.subsets, random_state=0
            ).score
            print(
                f"{name:12}{version:>10}{difference:12.0e}{median:8.2g}"
                f"{f'{low:.2g} to {high:.2g}':>18}{median / ours[1]:8.2g}{score:7.3f}"
            )
    return None


if __name__ == "__main__":
    main()
