"""Fit every estimator on two trees and compare values, errors, reports and charges.

    python tests/golden.py OTHER_TREE [-k PATTERN]

OTHER_TREE is a work tree of another commit (`git worktree add`). Numbers may differ by 1e-12 of
max(1, |number|), those of float32 by 1e-6; events, reports and the types of errors must agree.
Differences are printed, and make the exit status 1. No numbers are committed: they depend on the
machine.
"""

import argparse
import dataclasses
import os
import pickle
import re
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from contextlib import suppress
from inspect import signature
from itertools import product
from pathlib import Path

import numpy as np
from problems import clusters, noisy_line, two_classes
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

# The cases -----------------------------------------------------------------------------------

LINE, THREE = noisy_line(0, 40), noisy_line(1, 40, n_classes=3, names=("a", "b", "c"))
TWO = clusters(0, n=24)
GAMES = {  # rows, and what else is passed to fit
    "two classes": (TWO.rows, TWO.points),
    "three classes": (THREE.rows, THREE.points),
    "regression": (LINE.rows, LINE.points),
    "counts": ((LINE.X, LINE.y.round() ** 2), LINE.points | {"y_val": LINE.y_val.round() ** 2}),
    "ties": ((TWO.X.round(), TWO.y), TWO.points | {"X_val": TWO.X_val.round()}),
    "single": ((TWO.X.astype("f4"), TWO.y), TWO.points | {"X_val": TWO.X_val.astype("f4")}),
    "few rows": ((TWO.X[:9], TWO.y[:9]), TWO.points),
    "no points": (TWO.rows, {}),
    "groups": (TWO.rows, TWO.points | {"groups": np.array([*"dbcahfeg"] * 3)}),
    "groups, no points": (TWO.rows, {"groups": np.arange(24) % 8}),
    "weights": (TWO.rows, TWO.points | {"sample_weight_val": np.linspace(0.1, 2, 40)}),
    "row weights": (TWO.rows, TWO.points | {"sample_weight": np.linspace(0.1, 2, 24)}),
}
PRIVATE, SEED = {"epsilon": 1.0, "noise_random_state": 3}, {"random_state": 0}
SAMPLED = {"max_evaluations": 300, **SEED}
DRAWN = {"n_permutations": 8, "random_state": 0}
ROUNDS = {"n_rounds": 6, "n_permutations": 4, "random_state": 0}
LAYERS = {"l2": 1.0, "max_evaluations": 300, "random_state": 0}
NOISY = {"l2": 1.0, "n_layers": 2, "tol": 0.5, "random_state": 0, **PRIVATE}
BALL = {"radius": 1.0, "metric": "euclidean"}
SCORES = {"scores": lambda X, y, X_val, y_val: (X @ X_val.T) * (y[:, None] == y_val)}


def each(common=(), **lists):
    """Parameters for all combinations of the lists."""
    return [dict(common) | dict(zip(lists, values)) for values in product(*lists.values())]


# Class: parameters of a fit of each game, plain and private.
EVERY_GAME = {
    "KNNShapley": [{}], "TKNNShapley": [BALL, BALL | PRIVATE, {}], "DataOOB": [SEED],
    "LeaveOneOut": [{}], "Influence": [{}], "Scores": [SCORES], "Unrolled": [SEED],
    "InRunShapley": [SEED, SEED | PRIVATE], "Semivalue": [SAMPLED], "DataShapley": [SAMPLED],
    "DataBanzhaf": [SAMPLED], "BetaShapley": [SAMPLED], "LayeredShapley": [LAYERS, NOISY],
    "GradientSemivalue": [DRAWN, DRAWN | PRIVATE], "FederatedSemivalue": [ROUNDS, ROUNDS | PRIVATE],
}  # fmt: skip
SEMIVALUES, LOGISTIC = ("banzhaf", (16, 1), (4, 1)), LogisticRegression()
# Class: further parameters, of the first game or of the one that they name.
ALSO = {
    "KNNShapley": [
        *each(semivalue=SEMIVALUES), *each(metric=("cosine", "manhattan")),
        *each(utility=("original", "hard", "soft"), game=("ties", "regression", "no points")),
        *each({"device": "cpu"}, engine=("torch", "faiss"), game=("single", "no points")),
        *each(weights=("distance",), game=("ties", "no points")), {"cv": 3, "game": "no points"},
        {"max_rank": 9}, {"min_coalition": 3}, {"class_weight": "balanced"},
    ],
    "TKNNShapley": [
        *each(semivalue=SEMIVALUES, game=("two classes", "no points")),
        *each({"device": "cpu"}, engine=("torch", "faiss")), {"cv": 3, "game": "no points"},
        *each(BALL | PRIVATE, relation=("replace", "null")),
        *each(BALL | PRIVATE, denoise=(False, True), semivalue=("shapley", "banzhaf")),
        BALL | PRIVATE | {"max_contributions": 3}, PRIVATE, BALL | PRIVATE | {"epsilon": 15.0},
    ],
    "DataOOB": [SEED | {"estimator": GaussianNB(), "n_estimators": 50}, SEED | {"tol": 0.1}],
    "LeaveOneOut": [
        *each({"estimator": LOGISTIC}, method=("newton", "refit"),
              scoring=("accuracy", "neg_log_loss"), game=("three classes", "groups", "no points")),
        {"estimator": DecisionTreeClassifier(random_state=0)},
        {"estimator": PoissonRegressor(), "game": "counts"},
    ],
    "Influence": [*each(order=(1, 2), utility=("neg_loss", "accuracy")),
                  {"estimator": PoissonRegressor(), "game": "counts"}],
    "Unrolled": [SEED | {"optimizer": "adam"}, SEED | {"n_runs": 2}],
    "InRunShapley": [SEED | {"order": 2}, SEED | {"batch_size": 8}, SEED | {"clip": 0.5},
                     SEED | {"batch_size": 8} | PRIVATE],
    "Semivalue": [
        *each(SAMPLED, semivalue=("shapley", *SEMIVALUES),
              sampler=("stratified", "subsets", "permutation", "antithetic")),
        *each(SAMPLED, adjust=(True, False), game=("three classes", "groups", "no points")),
        *each(semivalue=SEMIVALUES, sampler=("exact",), game=("few rows",)),
        *each(SAMPLED, estimator=(Ridge(0.5), LinearRegression()), game=("regression",)),
        SAMPLED | {"estimator": GaussianNB()}, SAMPLED | {"batch": "torch", "device": "cpu"},
        SAMPLED | {"truncation": 0.05, "sampler": "permutation"}, SAMPLED | {"tol": 0.02},
        SAMPLED | {"sign_level": 0.8}, SAMPLED | {"stable_bottom": 3},
        SAMPLED | {"batch": "never", "max_evaluations": 60}, SAMPLED | {"scoring": "neg_log_loss"},
    ],
    "LayeredShapley": [
        *each(LAYERS, design=("blocks", "iid", "poisson"), allocation=("bound", "neyman"),
              l2=(1.0, None), game=("two classes", "no points")),
        *each(NOISY, release=("query", "all", "publish"), design=("blocks", "iid"),
              game=("two classes", "weights"), reader=("curator",)),
    ],
    "GradientSemivalue": [
        *each(DRAWN, semivalue=SEMIVALUES), *each(DRAWN | PRIVATE, semivalue=SEMIVALUES),
        *each(DRAWN | PRIVATE, noise=("iid", "correlated"), trust=("local", "server"),
              unit=("party", "example"), game=("groups",)),
        DRAWN | {"utility": "accuracy"}, DRAWN | {"clip": 0.5, "n_components": 2},
    ],
    "FederatedSemivalue": [
        *each(ROUNDS, semivalue=SEMIVALUES),
        *each(ROUNDS | PRIVATE, noise=("iid", "correlated", "recent"), trust=("local", "server"),
              unit=("party", "example"), game=("groups",)),
    ],
}  # fmt: skip


def valuers(record):
    """Fits of every valuer of rows."""
    import skvalue
    from skvalue.privacy import Ledger

    def fit(name, game="two classes", **parameters):
        cls = getattr(skvalue, f"{name}Valuer")
        rows, options = GAMES[game]
        if "ledger" in signature(cls).parameters and "epsilon" in parameters:
            parameters["ledger"] = Ledger(None, "rows", epsilon=99.0, delta=1e-3)
        valuer = cls(**parameters).fit(*rows, **options)
        seen = {"fit": contents(valuer), "ledger": contents(parameters.get("ledger"))}
        for method, args in {
            "values_for": (1,), "contributions": (0,), "harmful": (), "confidence_interval": (),
            "sign_decided": (), "transform": (rows[0][:5],), "score_samples": rows,
            "add_validation": (rows[0][::4], rows[1][::4]), "fit_transform": rows,
        }.items():  # fmt: skip
            if hasattr(valuer, method):
                seen[method] = contents(attempt(getattr(valuer, method), *args))
        return seen | {
            "in the end": contents(valuer),
            "charged": contents(parameters.get("ledger")),
        }

    for name, settings in EVERY_GAME.items():
        for parameters, game in product(settings, GAMES):
            record(fit, name, game=game, **parameters)
    for name, settings in ALSO.items():
        for parameters in settings:
            record(fit, name, **parameters)


def scorers(record):
    """Parties and sellers, their releases, and the scorers of whole data sets."""
    from skvalue import collaborative, priarta

    parties = [two_classes(seed, 50 + 20 * seed, 0, d=2, names=None).rows for seed in range(3)]
    targets = [(X / 4, np.clip(X[:, 0] / 4, -1, 1)) for X, _ in parties]
    T = np.eye(2) / 16

    def released(name, rows, **parameters):
        release = getattr(collaborative, name)(noise_random_state=1, **parameters).fit(*rows)
        return contents(release), contents(release.release_)

    def surprise(model, kind, rows, epsilon=None, **parameters):
        releases = {
            letter: getattr(collaborative, kind)(epsilon, noise_random_state=i).fit(*part).release_
            for i, (letter, part) in enumerate(zip("abc", rows))
        }
        scorer = collaborative.BayesianSurpriseScorer(
            model, random_state=0, n_particles=150, min_ess=20, **parameters
        ).fit(releases)
        return contents(scorer), contents(scorer.surprise("all"))

    for epsilon in (0.5, None):
        for more in ({}, {"fit_intercept": True}):
            record(released, "GramRelease", targets[0], epsilon=epsilon, **more)
            record(released, "LogisticRelease", parties[0], epsilon=epsilon, **more)
        record(released, "MeanRelease", parties[0][1:], epsilon=epsilon)
        linear = collaborative.BayesianLinear(0.105, x_covariance=T)
        record(surprise, linear, "GramRelease", targets, epsilon=epsilon)
        logistic = collaborative.BayesianLogistic(x_covariance=T)
        record(surprise, logistic, "LogisticRelease", parties, epsilon=epsilon)

    def priced(epsilon=None, **parameters):
        scorer = priarta.PriArTaScorer(epsilon=epsilon, noise_random_state=2, **parameters)
        scorer.fit(parties[0][0])
        summaries = scorer.summarize([X for X, _ in parties])
        scores = scorer.transform([X for X, _ in parties])
        return contents(scorer), [contents(summary) for summary in summaries], contents(scores)

    for epsilon in (1.0, None):
        for more in ({}, {"representation": "pca"}, {"metric": "kl"}, {"relation": "null"}):
            record(priced, epsilon=epsilon, **more)


# What is recorded ----------------------------------------------------------------------------


def attempt(function, *args, **options):
    """What a call returns, or the error that it raises."""
    try:
        return function(*args, **options)
    except Exception as error:
        return f"error {type(error).__name__}: {error}"


def contents(value):
    """The numbers and words of an object: a dict of dicts, arrays and strings."""
    if isinstance(value, dict):
        return {str(name): contents(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return {str(number): contents(part) for number, part in enumerate(value)}
    if isinstance(value, (str, np.ndarray, int, float, np.generic, type(None))):
        return np.asarray(value) if np.asarray(value).dtype.kind in "biuf" else str(value)
    cls = type(value)
    if not cls.__module__.startswith("skvalue."):
        return cls.__name__
    if dataclasses.is_dataclass(value):
        names = {field.name for field in dataclasses.fields(value)} - {"time", "process"}
    elif hasattr(value, "to_dict"):  # a privacy report
        return contents(value.to_dict()) | {"text": str(value)}
    elif cls.__name__ == "Ledger":
        names = ["charges"]
    else:
        names = {*dir(value), *dir(cls)}
        names = sorted(n for n in names if n.endswith("_") and not n.startswith("_"))
    found = {"class": cls.__name__}
    for name in names:
        with suppress(AttributeError):
            found[name] = contents(getattr(value, name))
    return found


def write(path, pattern):
    """Run the cases with the skvalue that is importable."""
    found = {}

    def record(function, *args, **options):
        words = [arg if isinstance(arg, str) else type(arg).__name__ for arg in args]
        words += [f"{key}={value}" for key, value in options.items() if key != "scores"]
        name = ", ".join([function.__name__, *words])
        if re.search(pattern, name):
            found[name] = contents(attempt(function, *args, **options))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        valuers(record)
        scorers(record)
    Path(path).write_bytes(pickle.dumps(found))


# Comparing -----------------------------------------------------------------------------------


def flat(found, above=""):
    for name, part in found.items():
        if isinstance(part, dict):
            yield from flat(part, f"{above}{name} / ")
        else:
            yield above + name, part


def differs(old, new):
    """What differs, in words, or None."""
    if isinstance(old, str) or isinstance(new, str):
        kinds = [str(side).split(":")[0] for side in (old, new)]
        same = old is new or str(old) == str(new)
        same |= kinds[0] == kinds[1] and kinds[0].startswith("error ")
        return None if same else f"{str(old)[:150]!r} -> {str(new)[:150]!r}"
    if old.shape != new.shape:
        return f"shape {old.shape} -> {new.shape}"
    limit = 1e-6 if "float32" in (old.dtype, new.dtype) else 1e-12
    old, new = np.float64(old), np.float64(new)
    with np.errstate(invalid="ignore"):
        off = np.abs(new - old) / np.maximum(1, np.abs(old))
    off = np.where(
        (old == new) | (np.isnan(old) & np.isnan(new)), 0, np.nan_to_num(off, nan=np.inf)
    )
    return f"by {off.max():.1e}" if off.max(initial=0) > limit else None


def compare(old, new):
    """Lines that say what differs, and how many numbers have the same bits."""
    old, new = dict(flat(old)), dict(flat(new))
    lines = []
    for side, here, there in (("old", old, new), ("new", new, old)):
        lost = Counter(name.partition(" / ")[2] or name for name in here if name not in there)
        lines += [f"only {side}, of {count} cases: {name}" for name, count in lost.items()]
    both = [name for name in old if name in new]
    lines += [f"{name}: {what}" for name in both if (what := differs(old[name], new[name]))]
    arrays = [name for name in both if not isinstance(old[name], str)]
    same = sum(np.array_equal(old[n], new[n], equal_nan=True) for n in arrays)
    return lines, f"{same} of {len(arrays)} arrays and numbers have the same bits"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tree")
    parser.add_argument("-k", dest="pattern", default="", help="a pattern of cases")
    parser.add_argument("--write", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        return write(options.write, options.pattern)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for tree in (Path(options.tree).resolve(), Path(__file__).resolve().parents[1]):
            file, paths = Path(folder, "found"), {"PYTHONPATH": str(tree), "PYTHONHASHSEED": "0"}
            command = [sys.executable, __file__, str(tree), "-k", options.pattern, "--write", file]
            subprocess.run(command, check=True, env={**os.environ, **ONE_THREAD, **paths})
            found.append(pickle.loads(file.read_bytes()))
    lines, summary = compare(*found)
    print(*lines, f"{len(found[1])} cases: {summary}; {len(lines)} differences", sep="\n")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
