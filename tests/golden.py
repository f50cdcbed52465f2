"""Fit every estimator on two trees and compare values, errors, reports and charges.

    python tests/golden.py OTHER_TREE [PATTERN]

OTHER_TREE is a work tree of another commit (`git worktree add`). Numbers may differ by
1e-12 of max(1, |number|), those of float32 by 1e-6; events, reports and the types of
errors must agree. Differences are printed, and make the exit status 1. No numbers are
committed: they depend on the machine.
"""

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

LINE, THREE = noisy_line(0, 40), noisy_line(1, 40, n_classes=3, names=("a", "b", "c"))
TWO = clusters(0, n=24)
GAMES = {  # rows, and what else is passed to fit
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
    return [
        dict(common) | dict(zip(lists, values)) for values in product(*lists.values())
    ]


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
    "Unrolled": [SEED | {"optimizer": "adamw"}, SEED | {"n_runs": 2}],
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


METHODS = {  # what is asked of a fitted valuer, with rows and labels
    "values_for": lambda X, y: (1,), "contributions": lambda X, y: (0,),
    "harmful": lambda X, y: (), "confidence_interval": lambda X, y: (),
    "sign_decided": lambda X, y: (), "transform": lambda X, y: (X[:5],),
    "score_samples": lambda X, y: (X, y), "fit_transform": lambda X, y: (X, y),
    "add_validation": lambda X, y: (X[::4], y[::4]),
}  # fmt: skip


def valued(name, game="two classes", **parameters):
    """What a fit of a valuer of rows leaves."""
    import skvalue
    from skvalue.privacy import Ledger

    cls = getattr(skvalue, f"{name}Valuer")
    rows, options = GAMES[game]
    if "ledger" in signature(cls).parameters and "epsilon" in parameters:
        parameters["ledger"] = Ledger(None, "rows", epsilon=99.0, delta=1e-3)
    valuer = cls(**parameters).fit(*rows, **options)
    seen = {"fit": contents(valuer), "ledger": contents(parameters.get("ledger"))}
    for method in filter(lambda method: hasattr(valuer, method), METHODS):
        seen[method] = contents(
            attempt(getattr(valuer, method), *METHODS[method](*rows))
        )
    return [seen, contents(valuer), contents(parameters.get("ledger"))]


PARTIES = [
    two_classes(seed, 50 + 20 * seed, 0, d=2, names=None).rows for seed in range(3)
]
TARGETS = [(X / 4, np.clip(X[:, 0] / 4, -1, 1)) for X, _ in PARTIES]


def surprise(model, kind, rows, epsilon=None):
    """Releases of parties, and their values."""
    from skvalue import collaborative

    model = getattr(collaborative, model)
    model = model(*[0.105][: kind == "GramRelease"], x_covariance=np.eye(2) / 16)
    makers = [
        getattr(collaborative, kind)(epsilon, noise_random_state=i) for i in range(3)
    ]
    made = [maker.fit(*part) for maker, part in zip(makers, rows)]
    scorer = collaborative.BayesianSurpriseScorer(
        model, random_state=0, n_particles=150, min_ess=20
    ).fit({letter: each.release_ for letter, each in zip("abc", made)})
    return [made, [each.release_ for each in made], scorer, scorer.surprise("all")]


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
        yield from (
            (valued, name, [], p | {"game": g}) for p, g in product(settings, GAMES)
        )
        yield from ((valued, name, [], parameters) for parameters in ALSO.get(name, ()))
    for epsilon in (0.5, None):
        linear, logistic = ["GramRelease", TARGETS], ["LogisticRelease", PARTIES]
        yield surprise, "BayesianLinear", linear, {"epsilon": epsilon}
        yield surprise, "BayesianLogistic", logistic, {"epsilon": epsilon}
        for more in (
            {},
            {"representation": "pca"},
            {"metric": "kl"},
            {"relation": "null"},
        ):
            yield priced, epsilon, [], more


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
        return {str(name): contents(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return contents(dict(enumerate(value)))
    if isinstance(value, (str, np.ndarray, int, float, np.generic, type(None))):
        return (
            np.asarray(value) if np.asarray(value).dtype.kind in "biuf" else str(value)
        )
    cls = type(value)
    if cls.__name__ == "PrivacyReport":
        return contents(dataclasses.asdict(value) | {"text": str(value)})
    names = {
        name for name in {*dir(value), *dir(cls)} if re.fullmatch(r"[^_].*_", name)
    }
    if not cls.__module__.startswith("skvalue."):
        names = set()
    elif dataclasses.is_dataclass(value):
        names = {field.name for field in dataclasses.fields(value)} - {
            "time",
            "process",
        }
    elif cls.__name__ == "Ledger":
        names = {"charges"}
    found = {"class": cls.__name__}
    for name in sorted(names):
        with suppress(AttributeError):
            found[name] = contents(getattr(value, name))
    return found


def write():
    """Run the cases with the skvalue that is importable; arguments: a file and a
    pattern."""
    found = {}
    warnings.simplefilter("ignore")
    for function, name, args, options in cases():
        words = [f"{key}={value}" for key, value in options.items() if key != "scores"]
        case = ", ".join([function.__name__, str(name), *words])
        if re.search(sys.argv[2], case):
            found[case] = contents(attempt(function, name, *args, **options))
    Path(sys.argv[1]).write_bytes(pickle.dumps(found))


def flat(found, above=""):
    for name, part in found.items():
        inside = isinstance(part, dict)
        yield from flat(part, f"{above}{name} / ") if inside else [(above + name, part)]


def agree(old, new):
    """Whether two arrays or words say the same; of errors the type counts."""
    if isinstance(old, str) or isinstance(new, str):
        kinds = {
            re.sub("^(error .*?):.*", r"\1", str(side), flags=re.DOTALL)
            for side in (old, new)
        }
        return len(kinds) == 1
    limit = 1e-6 if "float32" in (old.dtype, new.dtype) else 1e-12
    return (
        old.shape == new.shape
        and np.isclose(new, old, limit, limit, equal_nan=True).all()
    )


def compare(old, new):
    """Lines that say what differs, and how many numbers have the same bits."""
    old, new = dict(flat(old)), dict(flat(new))
    both = [name for name in old if name in new]
    lines = [f"only in one: {name}" for name in sorted(old.keys() ^ new.keys())]
    lines += [
        f"{n}: {str(old[n])[:150]!r} -> {str(new[n])[:150]!r}"
        for n in both if not agree(old[n], new[n])
    ]  # fmt: skip
    arrays = [name for name in both if not isinstance(old[name], str)]
    same = sum(np.array_equal(old[n], new[n], equal_nan=True) for n in arrays)
    return lines, f"{same} of {len(arrays)} arrays and numbers have the same bits"


def main(tree, pattern=""):
    found, here = [], Path(__file__).resolve().parent
    with tempfile.TemporaryDirectory() as folder:
        for root in (Path(tree).resolve(), here.parent):
            command = [
                sys.executable,
                "-c",
                "import golden; golden.write()",
                f"{folder}/found",
            ]
            paths = {"PYTHONPATH": f"{root}{os.pathsep}{here}", "PYTHONHASHSEED": "0"}
            env = os.environ | paths | dict.fromkeys(ONE_THREAD, "1")
            # Elsewhere, since the skvalue in the current folder would come before that
            # of the tree.
            subprocess.run([*command, pattern], check=True, env=env, cwd=folder)
            found.append(pickle.loads(Path(folder, "found").read_bytes()))
    lines, summary = compare(*found)
    print(
        *lines, f"{len(found[1])} cases: {summary}; {len(lines)} differences", sep="\n"
    )
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
