"""Fit every estimator on two trees and compare values, errors, reports and charges.

    python tests/golden.py OTHER_TREE [PATTERN]

OTHER_TREE is a work tree of another commit (`git worktree add`). Numbers may differ by
1e-12 of max(1, |number|), those of float32 by 1e-6; events, reports and the types of
errors must agree. Differences are printed, and make the exit status 1. No numbers are
committed: they depend on the machine.
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
from contextlib import suppress
from inspect import signature
from itertools import product
from pathlib import Path

import numpy as np
from problems import clusters, noisy_line, two_classes
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

ONE_THREAD = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"

# The cases ----------------------------------------------------------------------------

LINE = noisy_line(0, 40)
THREE = noisy_line(1, 40, n_classes=3, names=("a", "b", "c"))
TWO = clusters(0, n=24)
# Name -> rows, and what else is passed to fit.
GAMES = {
    "two classes": (TWO.rows, TWO.points),
    "three classes": (THREE.rows, THREE.points),
    "regression": (LINE.rows, LINE.points),
    "counts": (
        (LINE.X, LINE.y.round() ** 2),
        LINE.points | {"y_val": LINE.y_val.round() ** 2},
    ),
    "ties": ((TWO.X.round(), TWO.y), TWO.points | {"X_val": TWO.X_val.round()}),
    "single": (
        (TWO.X.astype("f4"), TWO.y),
        TWO.points | {"X_val": TWO.X_val.astype("f4")},
    ),
    "few rows": ((TWO.X[:9], TWO.y[:9]), TWO.points),
    "no points": (TWO.rows, {}),
    "groups": (TWO.rows, TWO.points | {"groups": np.array([*"dbcahfeg"] * 3)}),
    "groups, no points": (TWO.rows, {"groups": np.arange(24) % 8}),
    "weights": (TWO.rows, TWO.points | {"sample_weight_val": np.linspace(0.1, 2, 40)}),
    "row weights": (TWO.rows, TWO.points | {"sample_weight": np.linspace(0.1, 2, 24)}),
}
PRIVATE = {"epsilon": 1.0, "noise_random_state": 3}
SEED = {"random_state": 0}
SAMPLED = {"max_evaluations": 300, **SEED}
DRAWN = {"n_permutations": 8, **SEED}
ROUNDS = {"n_rounds": 6, "n_permutations": 4, **SEED}
LAYERS = {"l2": 1.0, "max_evaluations": 300, **SEED}
NOISY = {"l2": 1.0, "n_layers": 2, "tol": 0.5, **SEED, **PRIVATE}
BALL = {"radius": 1.0, "metric": "euclidean"}
CPU = {"device": "cpu"}
SCORES = {"scores": lambda X, y, X_val, y_val: (X @ X_val.T) * (y[:, None] == y_val)}


def combinations(common=(), **lists):
    """Parameters for all combinations of the lists."""
    common = dict(common)
    return [common | dict(zip(lists, values)) for values in product(*lists.values())]


# Class: parameters of a fit of each game, plain and private.
EVERY_GAME = {
    "KNNShapley": [{}],
    "TKNNShapley": [BALL, BALL | PRIVATE, {}],
    "DataOOB": [SEED],
    "LeaveOneOut": [{}],
    "Influence": [{}],
    "Scores": [SCORES],
    "Unrolled": [SEED],
    "InRunShapley": [SEED, SEED | PRIVATE],
    "Semivalue": [SAMPLED],
    "DataShapley": [SAMPLED],
    "DataBanzhaf": [SAMPLED],
    "BetaShapley": [SAMPLED],
    "LayeredShapley": [LAYERS, NOISY],
    "GradientSemivalue": [DRAWN, DRAWN | PRIVATE],
    "FederatedSemivalue": [ROUNDS, ROUNDS | PRIVATE],
}
SEMIVALUES = ("banzhaf", (16, 1), (4, 1))
LOGISTIC = LogisticRegression()
NO_POINTS = {"game": "no points"}
TWO_GAMES = ("two classes", "no points")
# Class: further parameters, of the first game or of the one that they name.
ALSO = {
    "KNNShapley": [
        *combinations(semivalue=SEMIVALUES),
        *combinations(metric=("cosine", "manhattan")),
        *combinations(
            utility=("original", "hard", "soft"),
            game=("ties", "regression", "no points"),
        ),
        *combinations(CPU, engine=("torch", "faiss"), game=("single", "no points")),
        *combinations(weights=("distance",), game=("ties", "no points")),
        NO_POINTS | {"cv": 3},
        {"max_rank": 9},
        {"min_coalition": 3},
        {"class_weight": "balanced"},
    ],
    "TKNNShapley": [
        *combinations(semivalue=SEMIVALUES, game=TWO_GAMES),
        *combinations(CPU, engine=("torch", "faiss")),
        NO_POINTS | {"cv": 3},
        *combinations(BALL | PRIVATE, relation=("replace", "null")),
        *combinations(
            BALL | PRIVATE, denoise=(False, True), semivalue=("shapley", "banzhaf")
        ),
        BALL | PRIVATE | {"max_contributions": 3},
        PRIVATE,
        BALL | PRIVATE | {"epsilon": 15.0},
    ],
    "DataOOB": [
        SEED | {"estimator": GaussianNB(), "n_estimators": 50},
        SEED | {"tol": 0.1},
    ],
    "LeaveOneOut": [
        *combinations(
            {"estimator": LOGISTIC},
            method=("newton", "refit"),
            scoring=("accuracy", "neg_log_loss"),
            game=("three classes", "groups", "no points"),
        ),
        {"estimator": DecisionTreeClassifier(random_state=0)},
        {"estimator": PoissonRegressor(), "game": "counts"},
    ],
    "Influence": [
        *combinations(order=(1, 2), utility=("neg_loss", "accuracy")),
        {"estimator": PoissonRegressor(), "game": "counts"},
    ],
    "Unrolled": [SEED | {"optimizer": "adamw"}, SEED | {"n_runs": 2}],
    "InRunShapley": [
        SEED | {"order": 2},
        SEED | {"batch_size": 8},
        SEED | {"clip": 0.5},
        SEED | {"batch_size": 8} | PRIVATE,
    ],
    "Semivalue": [
        *combinations(
            SAMPLED,
            semivalue=("shapley", *SEMIVALUES),
            sampler=("stratified", "subsets", "permutation", "antithetic"),
        ),
        *combinations(
            SAMPLED,
            adjust=(True, False),
            game=("three classes", "groups", "no points"),
        ),
        *combinations(semivalue=SEMIVALUES, sampler=("exact",), game=("few rows",)),
        *combinations(
            SAMPLED, estimator=(Ridge(0.5), LinearRegression()), game=("regression",)
        ),
        SAMPLED | {"estimator": GaussianNB()},
        SAMPLED | CPU | {"batch": "torch"},
        SAMPLED | {"truncation": 0.05, "sampler": "permutation"},
        SAMPLED | {"tol": 0.02},
        SAMPLED | {"batch": "never", "max_evaluations": 60},
        SAMPLED | {"scoring": "neg_log_loss"},
    ],
    "LayeredShapley": [
        *combinations(
            LAYERS,
            design=("blocks", "iid", "poisson"),
            allocation=("bound", "neyman"),
            l2=(1.0, None),
            game=TWO_GAMES,
        ),
        *combinations(
            NOISY,
            release=("query", "all", "publish"),
            design=("blocks", "iid"),
            game=("two classes", "weights"),
            reader=("curator",),
        ),
    ],
    "GradientSemivalue": [
        *combinations(DRAWN, semivalue=SEMIVALUES),
        *combinations(DRAWN | PRIVATE, semivalue=SEMIVALUES),
        *combinations(
            DRAWN | PRIVATE,
            noise=("iid", "correlated"),
            trust=("local", "server"),
            unit=("party", "example"),
            game=("groups",),
        ),
        DRAWN | {"utility": "accuracy"},
        DRAWN | {"clip": 0.5, "n_components": 2},
    ],
    "FederatedSemivalue": [
        *combinations(ROUNDS, semivalue=SEMIVALUES),
        *combinations(
            ROUNDS | PRIVATE,
            noise=("iid", "correlated", "recent"),
            trust=("local", "server"),
            unit=("party", "example"),
            game=("groups",),
        ),
    ],
}


# Method of a fitted valuer -> its arguments, from rows and labels.
METHODS = {
    "values_for": lambda X, y: (1,),
    "contributions": lambda X, y: (0,),
    "harmful": lambda X, y: (),
    "confidence_interval": lambda X, y: (),
    "sign_decided": lambda X, y: (),
    "transform": lambda X, y: (X[:5],),
    "score_samples": lambda X, y: (X, y),
    "fit_transform": lambda X, y: (X, y),
    "add_validation": lambda X, y: (X[::4], y[::4]),
}


def valued(name, game="two classes", **parameters):
    """What a fit of a valuer of rows leaves."""
    import skvalue
    from skvalue.privacy import Ledger

    cls = getattr(skvalue, f"{name}Valuer")
    rows, options = GAMES[game]
    if "ledger" in signature(cls).parameters and "epsilon" in parameters:
        parameters["ledger"] = Ledger(None, "rows", epsilon=99.0, delta=1e-3)
    ledger = parameters.get("ledger")
    valuer = cls(**parameters).fit(*rows, **options)
    record = {"fit": contents(valuer), "ledger": contents(ledger)}
    for method, arguments in METHODS.items():
        if hasattr(valuer, method):
            answer = attempt(getattr(valuer, method), *arguments(*rows))
            record[method] = contents(answer)
    return [record, contents(valuer), contents(ledger)]


PARTIES = [
    two_classes(seed, 50 + 20 * seed, 0, d=2, names=None).rows for seed in range(3)
]
TARGETS = [(X / 4, np.clip(X[:, 0] / 4, -1, 1)) for X, _ in PARTIES]


def surprise(model, kind, rows, epsilon=None):
    """Releases of parties, and their values."""
    from skvalue import collaborative

    model_class = getattr(collaborative, model)
    arguments = [0.105] if kind == "GramRelease" else []
    model = model_class(*arguments, x_covariance=np.eye(2) / 16)
    release_class = getattr(collaborative, kind)
    parties = [
        release_class(epsilon, noise_random_state=i).fit(*data)
        for i, data in enumerate(rows)
    ]
    releases = [party.release_ for party in parties]
    scorer = collaborative.BayesianSurpriseScorer(
        model, random_state=0, n_particles=150, min_ess=20
    )
    scorer.fit(dict(zip("abc", releases)))
    return [parties, releases, scorer, scorer.surprise("all")]


def priced(epsilon=None, **parameters):
    """Summaries of sellers, and their scores."""
    from skvalue import priarta

    scorer = priarta.PriArTaScorer(epsilon=epsilon, noise_random_state=2, **parameters)
    sellers = [X for X, _ in PARTIES]
    scorer.fit(sellers[0])
    return [scorer, scorer.summarize(sellers), scorer.transform(sellers)]


def cases():
    """(function, name, further positions, keywords) of all fits."""
    for name, settings in EVERY_GAME.items():
        for parameters, game in product(settings, GAMES):
            yield valued, name, [], parameters | {"game": game}
        for parameters in ALSO.get(name, ()):
            yield valued, name, [], parameters
    scorers = [
        {},
        {"representation": "pca"},
        {"metric": "kl"},
        {"relation": "null"},
    ]
    for epsilon in (0.5, None):
        options = {"epsilon": epsilon}
        yield surprise, "BayesianLinear", ["GramRelease", TARGETS], options
        yield surprise, "BayesianLogistic", ["LogisticRelease", PARTIES], options
        for parameters in scorers:
            yield priced, epsilon, [], parameters


# What is recorded, and compared -------------------------------------------------------


def attempt(function, *args, **options):
    """What a call returns, or the error that it raises."""
    try:
        return function(*args, **options)
    except Exception as error:
        return f"error {type(error).__name__}: {error}"


def contents(value):
    """The numbers and words of an object: a dict of dicts, arrays and strings."""
    if isinstance(value, dict):
        return {str(name): contents(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return contents(dict(enumerate(value)))
    if isinstance(value, (str, np.ndarray, int, float, np.generic, type(None))):
        array = np.asarray(value)
        return array if array.dtype.kind in "biuf" else str(value)
    if type(value).__name__ == "PrivacyReport":
        return contents(dataclasses.asdict(value) | {"text": str(value)})
    record = {"class": type(value).__name__}
    for name in recorded_names(value):
        with suppress(AttributeError):
            record[name] = contents(getattr(value, name))
    return record


def recorded_names(value):
    """Names of the attributes of an object of skvalue that are recorded."""
    cls = type(value)
    if not cls.__module__.startswith("skvalue."):
        return []
    if dataclasses.is_dataclass(value):
        names = {field.name for field in dataclasses.fields(value)}
        return sorted(names - {"time", "process"})
    if cls.__name__ == "Ledger":
        return ["charges"]
    names = {*dir(value), *dir(cls)}
    return sorted(name for name in names if re.fullmatch(r"[^_].*_", name))


def write():
    """Run the cases with the skvalue that is importable; arguments: a file and a
    pattern."""
    path, pattern = sys.argv[1:]
    records = {}
    warnings.simplefilter("ignore")
    for function, name, positions, options in cases():
        words = [f"{key}={value}" for key, value in options.items() if key != "scores"]
        case = ", ".join([function.__name__, str(name), *words])
        if re.search(pattern, case):
            records[case] = contents(attempt(function, name, *positions, **options))
    Path(path).write_bytes(pickle.dumps(records))


def flat(record, above=""):
    """Names, with those above them, and entries of a dict of dicts."""
    for name, entry in record.items():
        if isinstance(entry, dict):
            yield from flat(entry, f"{above}{name} / ")
        else:
            yield above + name, entry


def agree(old, new):
    """Whether two arrays or words say the same; of errors the type counts."""
    if isinstance(old, str) or isinstance(new, str):
        return _without_message(old) == _without_message(new)
    limit = 1e-6 if "float32" in (old.dtype, new.dtype) else 1e-12
    if old.shape != new.shape:
        return False
    return np.isclose(new, old, limit, limit, equal_nan=True).all()


def _without_message(entry):
    return re.sub("^(error .*?):.*", r"\1", str(entry), flags=re.DOTALL)


def compare(old, new):
    """Lines that say what differs, and how many numbers have the same bits."""
    old = dict(flat(old))
    new = dict(flat(new))
    lines = [f"only in one: {name}" for name in sorted(old.keys() ^ new.keys())]
    n_arrays = 0
    n_same_bits = 0
    for name in old:
        if name not in new:
            continue
        if not agree(old[name], new[name]):
            texts = str(old[name])[:150], str(new[name])[:150]
            lines.append(f"{name}: {texts[0]!r} -> {texts[1]!r}")
        # A fit that failed in one tree alone has a text there, and differs.
        if not isinstance(old[name], str) and not isinstance(new[name], str):
            n_arrays += 1
            n_same_bits += np.array_equal(old[name], new[name], equal_nan=True)
    return lines, f"{n_same_bits} of {n_arrays} arrays and numbers have the same bits"


def record_of(tree, pattern):
    """The record that the skvalue of a work tree writes, in a process of its own."""
    tests = Path(__file__).resolve().parent
    env = os.environ | {
        "PYTHONPATH": f"{tree}{os.pathsep}{tests}",
        "PYTHONHASHSEED": "0",
        **dict.fromkeys(ONE_THREAD, "1"),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "record")
        script = "import golden; golden.write()"
        # Elsewhere, since the skvalue in the current folder would come before that of
        # the tree.
        subprocess.run(
            [sys.executable, "-c", script, path, pattern],
            check=True,
            env=env,
            cwd=folder,
        )
        return pickle.loads(path.read_bytes())


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tree", metavar="OTHER_TREE", type=Path)
    parser.add_argument("pattern", metavar="PATTERN", nargs="?", default="")
    args = parser.parse_args(arguments)
    if not (args.tree / "skvalue" / "__init__.py").is_file():
        # Python would import the skvalue that is installed, and find no difference.
        parser.error(f"OTHER_TREE must be a work tree of skvalue. Got {args.tree}.")

    old = record_of(args.tree.resolve(), args.pattern)
    new = record_of(Path(__file__).resolve().parents[1], args.pattern)
    if not new:
        parser.error(f"PATTERN must be that of a case. Got {args.pattern!r}.")
    lines, summary = compare(old, new)
    print(*lines, sep="\n")
    print(f"{len(new)} cases: {summary}; {len(lines)} differences")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
