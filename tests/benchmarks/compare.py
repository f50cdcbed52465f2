"""Time of this work tree compared with that of another, line by line of a table of
workloads.

    python tests/benchmarks/compare.py OTHER_TREE [-k PATTERN] [--pairs 9]

OTHER_TREE is a work tree of another commit (``git worktree add``). For each line this
tree and the other run in turn, and with each pair the other and itself: the control,
which shows what the machine does to ratios. A line fails if its median ratio exceeds
1.05 and the largest ratio of its control. Exits 1 if any fails.

Trees stay imported in processes of their own, which run a line once before it is timed,
so that nothing is compiled and no data are made within the time. The lines are the
workloads of tests/benchmarks on skvalue's own side, each so small that a run takes 0.05
to 0.5 seconds.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from time import perf_counter, process_time, sleep

import numpy as np
from scipy import sparse
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.tree import DecisionTreeClassifier

import skvalue
from skvalue import collaborative, games, priarta

HERE = Path(__file__).resolve()
LIMIT = 1.05
LEAST = 0.05  # seconds; shorter runs are repeated within one measurement
PAUSE = 0.03  # idle BLAS threads spin for a while, and would take a core from who comes next

# Data ---------------------------------------------------------------------------------


def rows(n, n_val, d, n_classes=2, dtype=np.float32):
    rng = np.random.default_rng(0)
    X, X_val = (rng.standard_normal((size, d)).astype(dtype) for size in (n, n_val))
    y, y_val = (rng.integers(0, n_classes, size) for size in (n, n_val))
    return dict(X=X, y=y, X_val=X_val, y_val=y_val)


def rows_alone(n, d):
    data = rows(n, 1, d)
    return dict(X=data["X"], y=data["y"])


def texts(n=5000, n_val=100):
    """Texts of about 50 words each, of a vocabulary of 30,000."""
    rng = np.random.default_rng(0)
    X = sparse.random_array(
        (n + n_val, 30_000), density=50 / 30_000, format="csr", rng=rng
    )
    X, y = X.astype(np.float32), rng.integers(0, 2, n + n_val)
    return dict(X=X[n_val:], y=y[n_val:], X_val=X[:n_val], y_val=y[:n_val])


def in_a_file():
    data = rows(10_000, 200, 32)
    with tempfile.TemporaryDirectory() as folder:  # an open map outlives its file
        np.save(f"{folder}/rows.npy", data["X"])
        return data | {"X": np.load(f"{folder}/rows.npy", mmap_mode="r")}


def learnable(n, d, n_val=500, target="classes", **more):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + n_val, d))
    margin = X @ rng.standard_normal(d) + 2 * rng.standard_normal(n + n_val)
    y = (margin > 0).astype(int) if target == "classes" else margin
    return dict(X=X[:n], y=y[:n], X_val=X[n:], y_val=y[n:], **more)


def in_groups(n, n_groups):
    return learnable(n, 20, groups=np.arange(n) % n_groups)


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], (y > np.median(y)).astype(int)[order]
    return dict(X=X[:300], y=y[:300], X_val=X[300:], y_val=y[300:])


def coalitions(n, kind, count=1000):
    """The prefixes of orders, one order after the other; or random ones."""
    rng = np.random.default_rng(1)
    if kind == "random":
        return rng.random((count, n)) < 0.5
    places = np.argsort([rng.permutation(n) for _ in range(-(-count // n))], axis=1)
    masks = places[:, None, :] <= np.arange(n)[None, :, None]
    return masks.reshape(-1, n)


# The lines: name -> a function that prepares and returns what is timed ----------------------------

LINES = {}


def line(name, prepare, *args, **options):
    LINES[name] = lambda: prepare(*args, **options)


def fit(name, data, *args, then=lambda valuer: None, **parameters):
    """A fit of a valuer, and what is asked of it then."""
    data = data[0](*data[1:]) if isinstance(data, tuple) else data()
    return lambda: then(
        getattr(skvalue, f"{name}Valuer")(*args, **parameters).fit(**data)
    )


def neighbours():
    radii = {("euclidean", 32): 7.0, ("euclidean", 512): 31.0}
    for d, n_val in ((32, 250), (512, 100)):
        for metric in ("euclidean", "cosine"):
            data, radius = (rows, 20_000, n_val, d), radii.get((metric, d), 0.9)
            line(
                f"TKNN {metric}, d={d}", fit, "TKNNShapley", data, radius, metric=metric
            )
            line(f"KNN {metric}, d={d}", fit, "KNNShapley", data, metric=metric)
    double = (rows, 10_000, 200, 32, 2, np.float64)
    line("KNN float64", fit, "KNNShapley", double)
    line("TKNN float64", fit, "TKNNShapley", double, 7.0, metric="euclidean")
    line("KNN one thread", fit, "KNNShapley", double, n_jobs=1)
    line("KNN regression", fit, "KNNShapley", (learnable, 10_000, 20, 200, "targets"))
    for engine in ("numba", "torch", "faiss"):
        data, options = (rows, 10_000, 100, 32), dict(engine=engine, device="cpu")
        if (
            engine != "faiss"
        ):  # FAISS searches for few neighbours; a search for all takes long
            line(f"KNN by {engine}", fit, "KNNShapley", data, **options)
        line(
            f"KNN, max_rank=50, by {engine}",
            fit,
            "KNNShapley",
            data,
            max_rank=50,
            **options,
        )
        line(f"TKNN by {engine}", fit, "TKNNShapley", data, 0.6, **options)
    some, cosine = (rows, 10_000, 200, 32), {"metric": "cosine"}
    for name, argument in (("KNN", 5), ("TKNN", 0.9)):
        cls = f"{name}Shapley"
        line(
            f"{name} leave-one-out",
            fit,
            cls,
            (rows_alone, 2000, 32),
            argument,
            **cosine,
        )
        line(f"{name} of sparse rows", fit, cls, texts, argument, **cosine)
        line(f"{name} of a file", fit, cls, in_a_file, argument, **cosine)
        line(f"{name}, new rows", new_rows, cls, argument)
        line(f"{name}, validation_error_", fit, cls, some, argument, **cosine,
             then=lambda valuer: valuer.validation_error_)  # fmt: skip
    for n_classes in (2, 5):
        data = (rows, 20_000, 200, 512, n_classes)
        line(
            f"private TKNN, {n_classes} classes",
            fit,
            "TKNNShapley",
            data,
            0.9,
            epsilon=1.0,
        )
    for name, options in (
        ("capped", {"max_contributions": 5}),
        ("raw", {"denoise": False}),
    ):
        data = (rows, 20_000, 200, 32)
        line(
            f"private TKNN, {name}",
            fit,
            "TKNNShapley",
            data,
            0.6,
            epsilon=1.0,
            **options,
        )


def new_rows(name, argument):
    valuer = getattr(skvalue, f"{name}Valuer")(argument, metric="cosine")
    valuer.fit(**rows(5000, 100, 32))
    X = rows(200, 1, 32)["X"] + 1
    return lambda: valuer.transform(X)


def play(estimator, n, d, kind, count, target="classes", **options):
    data, masks = learnable(n, d, target=target), coalitions(n, kind, count)
    options |= {"n_jobs": 1, "cache_size": 0}
    return lambda: games.ModelGame(estimator, **data, **options).utility(masks)


def stable():
    data, masks = learnable(100, 20), coalitions(100, "orders")
    return lambda: games.StableLogisticGame(**data, n_jobs=1).utility(masks)


def coalition_games():
    logistic = LogisticRegression()
    for kind in ("orders", "random"):
        for n, d, count in ((100, 10, 1000), (300, 20, 1000), (500, 50, 500)):
            line(f"game of logistic, n={n}, {kind}", play, logistic, n, d, kind, count)
        for estimator in (Ridge(), LinearRegression()):
            line(
                f"game of {estimator}, {kind}",
                play,
                estimator,
                300,
                20,
                kind,
                900,
                "targets",
            )
        for estimator in (NearestCentroid(), GaussianNB(), KNeighborsClassifier()):
            line(f"game of {estimator}, {kind}", play, estimator, 300, 20, kind, 900)
    line(
        "game of trees, the loop", play, DecisionTreeClassifier(), 300, 20, "random", 15
    )
    line("game of logistic, torch", play, logistic, 200, 10, "random", 200, batch="torch",
         device="cpu")  # fmt: skip
    line("game of the stable logistic", stable)


def retraining():
    for name, options in {
        "Data Shapley": {"semivalue": "shapley"},
        "Data Banzhaf": {"semivalue": "banzhaf", "sampler": "subsets"},
        "Beta Shapley": {"semivalue": (4, 1)},
        "permutation": {"sampler": "permutation"},
        "antithetic": {"sampler": "antithetic"},
        "truncated": {"sampler": "antithetic", "truncation": 0.02},
        "the loop": {"batch": "never", "sampler": "stratified", "max_evaluations": 150},
    }.items():
        options = {"max_evaluations": 1600, "n_jobs": 1, "random_state": 0, **options}
        line(f"semivalues, {name}", fit, "Semivalue", (learnable, 200, 10), **options)
    line("leave-one-out", fit, "LeaveOneOut", (learnable, 300, 20))
    line("exact, 12 rows", fit, "Semivalue", (learnable, 12, 3), sampler="exact")
    line("Data-OOB", fit, "DataOOB", (rows_alone, 300, 20), n_estimators=40, n_jobs=1,
         random_state=0)  # fmt: skip


def gradients():
    cls, seed = "GradientSemivalue", {"random_state": 0}
    line("gradients", fit, cls, diabetes, "logistic", n_permutations=60, **seed)
    line(
        "gradients, softmax",
        fit,
        cls,
        (learnable, 200, 20),
        "softmax",
        n_permutations=30,
    )
    line("gradients, groups", fit, cls, (in_groups, 1000, 50), n_permutations=60)
    line("gradients, components", fit, cls, diabetes, n_permutations=60, n_components=3,
         clip="median")  # fmt: skip
    for noise in ("iid", "correlated"):
        line(f"private gradients, {noise}", fit, cls, diabetes, "logistic", n_permutations=120,
             noise_multiplier=0.05, noise=noise, burn_in=0.0, learning_rate=0.05)  # fmt: skip
    line("private gradients, example", fit, cls, (in_groups, 1000, 50), n_permutations=60,
         epsilon=1.0, unit="example", learning_rate=0.1)  # fmt: skip
    line("gradients, convolution", convolution)
    for name, options in (("federated", {}), ("private federated", {"epsilon": 1.0})):
        line(name, fit, "FederatedSemivalue", (in_groups, 1000, 20), n_rounds=100,
             learning_rate=0.1, **seed, **options)  # fmt: skip


def convolution_of(nn, n_features):
    layers = nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(n_features, 10))


def convolution():
    import torch
    from torch import nn

    torch.manual_seed(0)
    network = convolution_of(nn, 16 * 9)
    X = np.random.default_rng(0).random((80, 1, 8, 8), dtype=np.float32)
    y = np.arange(80) % 10
    data = {"X": X[:40], "y": y[:40], "X_val": X[40:], "y_val": y[40:]}
    options = {
        "n_permutations": 4,
        "learning_rate": 0.1,
        "device": "cpu",
        "random_state": 0,
    }
    return fit("GradientSemivalue", lambda: data, network, **options)


def layers():
    logistic = {"scoring": "neg_log_loss", "estimator": LogisticRegression()}
    losses = {"l2": {"l2": 1.0}, "logistic": logistic}
    for design, n in (("blocks", 100), ("iid", 30), ("poisson", 30)):
        for name, options in losses.items():
            line(f"layers, {design}, {name}", fit, "LayeredShapley", (learnable, n, 50),
                 design=design, max_evaluations=2000, random_state=0, **options)  # fmt: skip
    line("private layers", fit, "LayeredShapley", (learnable, 30, 50), l2=1.0, n_layers=3,
         tol=0.2, epsilon=1.0, release="all", random_state=0)  # fmt: skip


def releases(counts, epsilons):
    """Linear parties of two features; the noise comes from seeds."""
    rng = np.random.default_rng(1)
    w, held = np.array([0.3, -0.4]), []
    for count in counts:
        X = np.sqrt(0.15) * rng.standard_normal((count, 2))
        held.append((X, X @ w + 0.16 * rng.standard_normal(count)))
    make = collaborative.GramRelease
    return lambda: [
        make(None, renyi_epsilon=epsilon, noise_random_state=i).fit(*rows).release_
        for i, (rows, epsilon) in enumerate(zip(held, epsilons))
    ]


def parties(n):
    return releases(range(80, 80 + 20 * n, 20), np.linspace(0.1, 0.5, n))


def surprise(n, n_particles):
    sent, make = parties(n)(), collaborative.BayesianSurpriseScorer
    model = collaborative.BayesianLinear(
        0.105, a0=20, b0=0.5, x_covariance=0.15 * np.eye(2)
    )
    options = {"n_particles": n_particles, "min_ess": 1, "random_state": 0}
    return lambda: make(model, **options).fit(sent)


def scores(n_sellers=30, d=64):
    rng = np.random.default_rng(0)
    scorer = priarta.PriArTaScorer(max_norm=8.0).fit(rng.normal(size=(500, d)))
    seller = priarta.SellerRelease(scorer.model_, 0.8)
    made = [seller.fit(X).summary_ for X in rng.normal(size=(n_sellers, 100, d))]
    return lambda: scorer.score_summaries(made)


def sellers(n_sellers=40, d=64):
    rng = np.random.default_rng(0)
    model = priarta.PriArTaScorer(max_norm=8.0).fit(rng.normal(size=(500, d))).model_
    held = rng.normal(size=(n_sellers, 200, d))
    return lambda: [priarta.SellerRelease(model, 0.8).fit(X).summary_ for X in held]


def buyer():
    X = np.random.default_rng(0).normal(size=(1000, 32))
    return lambda: priarta.PriArTaScorer("pca", epsilon=1.0).fit(X)


def data_sets():
    line("3 parties", surprise, 3, 150)
    line("10 parties", surprise, 10, 40)
    line("parties' releases", parties, 15)
    line("PriArTa, summaries", scores)
    line("PriArTa, sellers", sellers)
    line("PriArTa, buyer", buyer)


def grid(with_memory):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=600)
    X = rng.normal(size=(len(y), 20)) + y[:, None]

    def search():
        with tempfile.TemporaryDirectory() as folder:
            model = skvalue.ValueFilteredClassifier(
                LogisticRegression(),
                skvalue.KNNShapleyValuer(n_jobs=1),
                memory=folder if with_memory else None,
            )
            GridSearchCV(model, {"drop": [0, 0.05, 0.1, 0.2]}, cv=3).fit(X, y)

    return search


def filtered():
    data = rows(5000, 200, 32)
    return lambda: skvalue.ValueFilter(skvalue.KNNShapleyValuer()).fit_resample(**data)


def imported(code):
    """Seconds that a fresh interpreter measures itself; its start is not among them."""
    code = f"from time import perf_counter as now; t = now(); {code}; print(now() - t)"
    command = [sys.executable, "-c", code]
    return lambda: float(
        subprocess.run(command, capture_output=True, check=True, text=True).stdout
    )


for code in ("import skvalue", "from skvalue import KNNShapleyValuer"):
    line(f"fresh: {code}", imported, code)
for table in (neighbours, coalition_games, retraining, gradients, layers, data_sets):
    table()
line("a grid over drop", grid, False)
line("a grid over drop, with memory", grid, True)
line("filter", filtered)


# Workers ------------------------------------------------------------------------------


def work():
    """Serve: read a line's name and how often to run it, write the seconds that a run
    took."""
    prepared, answers = {}, os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a fit prints does not come between
    warnings.simplefilter("ignore")
    print(Path(skvalue.__file__).parents[1], file=answers, flush=True)
    for asked in sys.stdin:
        name, count = json.loads(asked)
        try:
            if name not in prepared:
                prepared.clear()  # the data of one line at a time
                prepared[name] = LINES[name]()
                prepared[name]()
            wall, cpu = perf_counter(), process_time()
            found = [prepared[name]() for _ in range(count)]
            wall, cpu = perf_counter() - wall, process_time() - cpu
            if name.startswith("fresh: "):
                wall = cpu = sum(found)
            answer = {"wall": wall / count, "cpu": cpu / count}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


class Worker:
    """A process that has the skvalue of one tree."""

    def __init__(self, tree):
        tree, pipe = str(Path(tree).resolve()), subprocess.PIPE
        command, paths = (
            [sys.executable, str(HERE), "--work"],
            {**os.environ, "PYTHONPATH": tree},
        )
        self.process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, env=paths
        )
        where = self.process.stdout.readline().strip()
        if where != tree:
            raise SystemExit(
                f"The skvalue imported is that of {where or 'nowhere'}, not {tree}."
            )

    def run(self, name, count=1):
        """Seconds of a run of a line, on the wall and of CPU, or the error."""
        sleep(PAUSE)
        self.process.stdin.write(json.dumps([name, count]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def measure(name, this, other, again, pairs, clock):
    """Ratios of this tree over the other, and of the other over itself; seconds of the
    other."""
    first = [worker.run(name) for worker in (this, other, again)]  # prepares
    for result in first:
        if "error" in result:
            raise RuntimeError(result["error"])
    fresh = name.startswith("fresh: ")
    count = 1 if fresh else max(1, int(np.ceil(LEAST / max(first[1]["wall"], 1e-4))))
    ratios, control, seconds = [], [], []
    for pair in range(pairs):
        for left, found in ((this, ratios), (again, control)):
            both = [left, other] if pair % 2 == 0 else [other, left]
            times = {worker: worker.run(name, count)[clock] for worker in both}
            found.append(times[left] / times[other])
            seconds.append(times[other])
    return np.array(ratios), np.array(control), np.median(seconds)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "tree", nargs="?", help="a work tree of the commit to compare with"
    )
    parser.add_argument("-k", dest="pattern", default="", help="pattern of lines")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work()
    if options.tree is None:
        parser.error("name a work tree of the commit to compare with")
    names = [name for name in LINES if re.search(options.pattern, name)]
    workers = [Worker(tree) for tree in (HERE.parents[2], options.tree, options.tree)]
    start, failed = perf_counter(), []
    print(f"{'line':42} {'seconds':>8} {'ratio':>6} {'spread':>15} {'control':>15}")
    for name in names:
        try:
            ratios, control, seconds = measure(
                name, *workers, options.pairs, options.clock
            )
        except RuntimeError as error:
            print(f"{name:42} {error}", flush=True)
            failed.append(name)
            continue
        ratio = np.median(ratios)
        slower = ratio > LIMIT and ratio > control.max()
        spreads = [
            f"[{part.min():.3f}, {part.max():.3f}]" for part in (ratios, control)
        ]
        print(f"{name:42} {seconds:8.4f} {ratio:6.3f} {spreads[0]:>15} {spreads[1]:>15}"
              f"{'  SLOWER' if slower else ''}", flush=True)  # fmt: skip
        if slower:
            failed.append(name)
    for worker in workers:
        worker.close()
    print(
        f"{len(names)} lines, {options.pairs} pairs each, in {perf_counter() - start:.0f} s"
    )
    print(f"failed: {', '.join(failed)}" if failed else "no line is slower")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
