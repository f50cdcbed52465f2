"""Time of this work tree over that of another, line by line of a table of workloads.

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
from typing import NamedTuple

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
from skvalue.neighbors import ENGINES

HERE = Path(__file__).resolve()
LIMIT = 1.05
MIN_SECONDS = 0.05  # shorter runs are repeated within one measurement
# Idle BLAS threads spin for a while, and would take a core from the next run.
PAUSE = 0.03
# Memory that a run frees stays with its process, with glibc. Else page faults of the
# next run depend on what the process freed before, by chance of a tree.
ALLOCATOR = {
    "MALLOC_TRIM_THRESHOLD_": "1000000000",
    "MALLOC_MMAP_THRESHOLD_": "1000000000",
}
FRESH = "fresh: "  # lines that measure themselves in a fresh interpreter

# Data ---------------------------------------------------------------------------------


def rows(n, n_val, d, n_classes=2, dtype=np.float32):
    """Random rows and labels, and validation points."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)).astype(dtype)
    X_val = rng.standard_normal((n_val, d)).astype(dtype)
    y = rng.integers(0, n_classes, n)
    y_val = rng.integers(0, n_classes, n_val)
    return {"X": X, "y": y, "X_val": X_val, "y_val": y_val}


def rows_without_validation(n, d):
    data = rows(n, 1, d)
    return {"X": data["X"], "y": data["y"]}


def texts(n=5000, n_val=100):
    """Texts of about 50 words each, of a vocabulary of 30,000."""
    rng = np.random.default_rng(0)
    X = sparse.random_array(
        (n + n_val, 30_000), density=50 / 30_000, format="csr", rng=rng
    )
    X = X.astype(np.float32)
    y = rng.integers(0, 2, n + n_val)
    return {"X": X[n_val:], "y": y[n_val:], "X_val": X[:n_val], "y_val": y[:n_val]}


def rows_in_a_file():
    data = rows(10_000, 200, 32)
    with tempfile.TemporaryDirectory() as folder:  # an open map outlives its file
        np.save(f"{folder}/rows.npy", data["X"])
        return data | {"X": np.load(f"{folder}/rows.npy", mmap_mode="r")}


def learnable(n, d, n_val=500, target="classes", **more):
    """Rows whose classes or numeric targets a linear model can learn."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + n_val, d))
    y = X @ rng.standard_normal(d) + 2 * rng.standard_normal(n + n_val)
    if target == "classes":
        y = (y > 0).astype(int)
    return {"X": X[:n], "y": y[:n], "X_val": X[n:], "y_val": y[n:], **more}


def learnable_groups(n, n_groups):
    return learnable(n, 20, groups=np.arange(n) % n_groups)


def diabetes():
    """300 rows of diabetes data in two classes; the others are validation points."""
    X, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X = X[order]
    y = (y > np.median(y)).astype(int)[order]
    return {"X": X[:300], "y": y[:300], "X_val": X[300:], "y_val": y[300:]}


def coalitions(n, kind, count=1000):
    """The prefixes of orders, one order after the other; or random ones."""
    rng = np.random.default_rng(1)
    if kind == "random":
        return rng.random((count, n)) < 0.5
    orders = [rng.permutation(n) for _ in range(-(-count // n))]
    positions = np.argsort(orders, axis=1)
    masks = positions[:, None, :] <= np.arange(n)[None, :, None]
    return masks.reshape(-1, n)


# The lines: name -> a function that prepares and returns what is timed ----------------

LINES = {}


def line(name, prepare, *args, **options):
    """Add a line, whose workload is made by ``prepare(*args, **options)``."""
    LINES[name] = lambda: prepare(*args, **options)


def fit(name, data, *args, then=lambda valuer: None, **parameters):
    """A fit of a valuer, and what is asked of it then.

    `data` is a function or a tuple of a function and its arguments.
    """
    if isinstance(data, tuple):
        make_data, *data_args = data
        data = make_data(*data_args)
    else:
        data = data()
    valuer_class = getattr(skvalue, f"{name}Valuer")
    return lambda: then(valuer_class(*args, **parameters).fit(**data))


def add_neighbour_lines():
    add_dense_neighbour_lines()
    add_engine_lines()
    add_other_neighbour_lines()
    add_private_neighbour_lines()


def add_dense_neighbour_lines():
    radii = {("euclidean", 32): 7.0, ("euclidean", 512): 31.0}
    for d, n_val in ((32, 250), (512, 100)):
        for metric in ("euclidean", "cosine"):
            data = (rows, 20_000, n_val, d)
            radius = radii.get((metric, d), 0.9)
            line(
                f"TKNN {metric}, d={d}", fit, "TKNNShapley", data, radius, metric=metric
            )
            line(f"KNN {metric}, d={d}", fit, "KNNShapley", data, metric=metric)
    few_columns = ((8, np.float32), (8, np.float64), (16, np.float32), (16, np.float64))
    for d, dtype in (*few_columns, (512, np.float64)):
        data = (rows, 20_000, 100, d, 2, dtype)
        name = f"d={d}, {np.dtype(dtype)}"
        radius = np.sqrt(1.6 * d)
        line(f"TKNN, {name}", fit, "TKNNShapley", data, radius, metric="euclidean")
        line(f"KNN, {name}", fit, "KNNShapley", data, metric="euclidean")
    data = (rows, 10_000, 200, 32, 2, np.float64)
    line("KNN float64", fit, "KNNShapley", data)
    line("TKNN float64", fit, "TKNNShapley", data, 7.0, metric="euclidean")
    line("KNN one thread", fit, "KNNShapley", data, n_jobs=1)
    data = (learnable, 10_000, 20, 200, "targets")
    line("KNN regression", fit, "KNNShapley", data)


def add_engine_lines():
    data = (rows, 10_000, 100, 32)
    # Trees of before the engine of the CPU was "native" call it "numba".
    native = "native" if "native" in ENGINES else "numba"
    for engine in ("native", "torch", "faiss"):
        name = native if engine == "native" else engine
        options = {"engine": name, "device": "cpu"}
        # FAISS searches for few neighbours; a search for all takes long.
        if engine != "faiss":
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


def add_other_neighbour_lines():
    cosine = {"metric": "cosine"}
    single_rows = (rows_without_validation, 2000, 32)
    data = (rows, 10_000, 200, 32)
    for name, argument in (("KNN", 5), ("TKNN", 0.9)):
        valuer = f"{name}Shapley"
        line(f"{name} leave-one-out", fit, valuer, single_rows, argument, **cosine)
        line(f"{name} of sparse rows", fit, valuer, texts, argument, **cosine)
        line(f"{name} of a file", fit, valuer, rows_in_a_file, argument, **cosine)
        line(f"{name}, new rows", transform_new_rows, valuer, argument)
        line(
            f"{name}, validation_error_",
            fit,
            valuer,
            data,
            argument,
            then=lambda valuer: valuer.validation_error_,
            **cosine,
        )


def transform_new_rows(name, argument):
    valuer = getattr(skvalue, f"{name}Valuer")(argument, metric="cosine")
    valuer.fit(**rows(5000, 100, 32))
    X = rows(200, 1, 32)["X"] + 1
    return lambda: valuer.transform(X)


def add_private_neighbour_lines():
    def private_line(label, data, radius, **options):
        line(
            f"private TKNN, {label}",
            fit,
            "TKNNShapley",
            data,
            radius,
            epsilon=1.0,
            **options,
        )

    for n_classes in (2, 5):
        data = (rows, 20_000, 200, 512, n_classes)
        private_line(f"{n_classes} classes", data, 0.9)
    data = (rows, 20_000, 200, 32)
    private_line("capped", data, 0.6, max_contributions=5)
    private_line("raw", data, 0.6, denoise=False)


def play(estimator, *, n, d, kind, count, target="classes", **options):
    """Utilities of coalitions in a game of models."""
    data = learnable(n, d, target=target)
    masks = coalitions(n, kind, count)

    def utilities():
        game = games.ModelGame(estimator, **data, n_jobs=1, cache_size=0, **options)
        return game.utility(masks)

    return utilities


def play_stable():
    data = learnable(100, 20)
    masks = coalitions(100, "orders")
    return lambda: games.StableLogisticGame(**data, n_jobs=1).utility(masks)


def add_game_lines():
    logistic = LogisticRegression()
    for kind in ("orders", "random"):
        for n, d, count in ((100, 10, 1000), (300, 20, 1000), (500, 50, 500)):
            sizes = {"n": n, "d": d, "kind": kind, "count": count}
            line(f"game of logistic, n={n}, {kind}", play, logistic, **sizes)
        sizes = {"n": 300, "d": 20, "kind": kind, "count": 900}
        for estimator in (Ridge(), LinearRegression()):
            name = f"game of {estimator}, {kind}"
            line(name, play, estimator, target="targets", **sizes)
        for estimator in (NearestCentroid(), GaussianNB(), KNeighborsClassifier()):
            line(f"game of {estimator}, {kind}", play, estimator, **sizes)
    line(
        "game of trees, the loop",
        play,
        DecisionTreeClassifier(),
        n=300,
        d=20,
        kind="random",
        count=15,
    )
    line(
        "game of logistic, torch",
        play,
        logistic,
        n=200,
        d=10,
        kind="random",
        count=200,
        batch="torch",
        device="cpu",
    )
    line("game of the stable logistic", play_stable)


def add_retraining_lines():
    designs = {
        "Data Shapley": {"semivalue": "shapley"},
        "Data Banzhaf": {"semivalue": "banzhaf", "sampler": "subsets"},
        "Beta Shapley": {"semivalue": (4, 1)},
        "permutation": {"sampler": "permutation"},
        "antithetic": {"sampler": "antithetic"},
        "truncated": {"sampler": "antithetic", "truncation": 0.02},
        "the loop": {"batch": "never", "sampler": "stratified", "max_evaluations": 150},
    }
    defaults = {"max_evaluations": 1600, "n_jobs": 1, "random_state": 0}
    many_evaluations = {"max_evaluations": 6000, "sampler": "marginals"}
    for name, options in {
        "marginals": many_evaluations,
        "marginals of log loss": many_evaluations | {"scoring": "neg_log_loss"},
        "controls": {"adjust": True, "sampler": "stratified"},
    }.items():
        data = (learnable, 100, 10)
        line(f"semivalues, {name}", fit, "Semivalue", data, **defaults | options)
    data = (learnable, 200, 10)
    for name, options in designs.items():
        line(f"semivalues, {name}", fit, "Semivalue", data, **defaults | options)
    line("leave-one-out", fit, "LeaveOneOut", (learnable, 300, 20))
    line("exact, 12 rows", fit, "Semivalue", (learnable, 12, 3), sampler="exact")
    line(
        "Data-OOB",
        fit,
        "DataOOB",
        (rows_without_validation, 300, 20),
        n_estimators=40,
        n_jobs=1,
        random_state=0,
    )


def add_gradient_lines():
    def gradient_line(name, data, *args, **options):
        line(name, fit, "GradientSemivalue", data, *args, **options)

    groups = (learnable_groups, 1000, 50)
    gradient_line("gradients", diabetes, "logistic", n_permutations=60, random_state=0)
    gradient_line(
        "gradients, softmax", (learnable, 200, 20), "softmax", n_permutations=30
    )
    gradient_line("gradients, groups", groups, n_permutations=60)
    gradient_line(
        "gradients, components",
        diabetes,
        n_permutations=60,
        n_components=3,
        clip="median",
    )
    for noise in ("iid", "correlated"):
        gradient_line(
            f"private gradients, {noise}",
            diabetes,
            "logistic",
            n_permutations=120,
            noise_multiplier=0.05,
            noise=noise,
            burn_in=0.0,
            learning_rate=0.05,
        )
    gradient_line(
        "private gradients, example",
        groups,
        n_permutations=60,
        epsilon=1.0,
        unit="example",
        learning_rate=0.1,
    )
    for model in ("softmax", "linear"):
        line(f"in-run, {model}", fit, "InRunShapley", diabetes, model, random_state=0)
    line("unrolled", fit, "Unrolled", diabetes, random_state=0)
    line("influence", fit, "Influence", (learnable, 300, 20))
    line("gradients, convolution", fit_convolution)
    for name, options in (("federated", {}), ("private federated", {"epsilon": 1.0})):
        line(
            name,
            fit,
            "FederatedSemivalue",
            (learnable_groups, 1000, 20),
            n_rounds=100,
            learning_rate=0.1,
            burn_in=0.2,  # whatever the default of a tree
            random_state=0,
            **options,
        )


def convolution_of(nn, n_features):
    """A network of one convolution, with `n_features` outputs, and ten classes."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(n_features, 10),
    )


def fit_convolution():
    import torch

    torch.manual_seed(0)
    network = convolution_of(torch.nn, 16 * 9)
    X = np.random.default_rng(0).random((80, 1, 8, 8), dtype=np.float32)
    y = np.arange(80) % 10
    data = {"X": X[:40], "y": y[:40], "X_val": X[40:], "y_val": y[40:]}
    return fit(
        "GradientSemivalue",
        lambda: data,
        network,
        n_permutations=4,
        learning_rate=0.1,
        device="cpu",
        random_state=0,
    )


def add_layered_lines():
    losses = {
        "l2": {"l2": 1.0},
        "logistic": {"scoring": "neg_log_loss", "estimator": LogisticRegression()},
    }
    for design, n in (("blocks", 100), ("iid", 30), ("poisson", 30)):
        for name, options in losses.items():
            line(
                f"layers, {design}, {name}",
                fit,
                "LayeredShapley",
                (learnable, n, 50),
                design=design,
                max_evaluations=2000,
                random_state=0,
                **options,
            )
    line(
        "private layers",
        fit,
        "LayeredShapley",
        (learnable, 30, 50),
        l2=1.0,
        n_layers=3,
        tol=0.2,
        epsilon=1.0,
        release="all",
        random_state=0,
    )


def releases(counts, epsilons):
    """Releases of linear parties of two features; the noise comes from seeds."""
    rng = np.random.default_rng(1)
    w = np.array([0.3, -0.4])
    datasets = []
    for count in counts:
        X = np.sqrt(0.15) * rng.standard_normal((count, 2))
        datasets.append((X, X @ w + 0.16 * rng.standard_normal(count)))

    def release_all():
        return [
            collaborative.GramRelease(None, renyi_epsilon=epsilon, noise_random_state=i)
            .fit(X, y)
            .release_
            for i, ((X, y), epsilon) in enumerate(zip(datasets, epsilons))
        ]

    return release_all


def parties(n):
    return releases(range(80, 80 + 20 * n, 20), np.linspace(0.1, 0.5, n))


def fit_surprise(n, n_particles):
    released = parties(n)()
    model = collaborative.BayesianLinear(
        0.105, a0=20, b0=0.5, x_covariance=0.15 * np.eye(2)
    )

    def fit_scorer():
        scorer = collaborative.BayesianSurpriseScorer(
            model, n_particles=n_particles, min_ess=1, random_state=0
        )
        return scorer.fit(released)

    return fit_scorer


def score_summaries(n_sellers=30, d=64):
    rng = np.random.default_rng(0)
    scorer = priarta.PriArTaScorer(max_norm=8.0).fit(rng.normal(size=(500, d)))
    seller = priarta.SellerRelease(scorer.model_, 0.8)
    summaries = [seller.fit(X).summary_ for X in rng.normal(size=(n_sellers, 100, d))]
    return lambda: scorer.score_summaries(summaries)


def fit_sellers(n_sellers=40, d=64):
    rng = np.random.default_rng(0)
    model = priarta.PriArTaScorer(max_norm=8.0).fit(rng.normal(size=(500, d))).model_
    datasets = rng.normal(size=(n_sellers, 200, d))
    return lambda: [priarta.SellerRelease(model, 0.8).fit(X).summary_ for X in datasets]


def fit_buyer():
    X = np.random.default_rng(0).normal(size=(1000, 32))
    return lambda: priarta.PriArTaScorer("pca", epsilon=1.0).fit(X)


def add_dataset_lines():
    line("3 parties", fit_surprise, 3, 150)
    line("10 parties", fit_surprise, 10, 40)
    line("parties' releases", parties, 15)
    line("PriArTa, summaries", score_summaries)
    line("PriArTa, sellers", fit_sellers)
    line("PriArTa, buyer", fit_buyer)


def search_drop(with_memory):
    """A grid-search over the fraction of rows to drop, in an empty store."""
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


def filter_rows():
    data = rows(5000, 200, 32)
    return lambda: skvalue.ValueFilter(skvalue.KNNShapleyValuer()).fit_resample(**data)


def seconds_of_fresh(code):
    """Seconds that a fresh interpreter measures itself, without those of its start."""
    code = f"from time import perf_counter as now; t = now(); {code}; print(now() - t)"
    command = [sys.executable, "-c", code]

    def seconds():
        result = subprocess.run(command, capture_output=True, check=True, text=True)
        return float(result.stdout)

    return seconds


for code in ("import skvalue", "from skvalue import KNNShapleyValuer"):
    line(FRESH + code, seconds_of_fresh, code)
add_neighbour_lines()
add_game_lines()
add_retraining_lines()
add_gradient_lines()
add_layered_lines()
add_dataset_lines()
line("a grid over drop", search_drop, False)
line("a grid over drop, with memory", search_drop, True)
line("filter", filter_rows)


# Workers ------------------------------------------------------------------------------


def work():
    """Serve: read a line's name and a number of runs, write the seconds of a run."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a fit prints does not come between
    warnings.simplefilter("ignore")
    print(Path(skvalue.__file__).parents[1], file=answers, flush=True)
    prepared = {}
    for request in sys.stdin:
        name, count = json.loads(request)
        try:
            if name not in prepared:
                prepared.clear()  # the data of one line at a time
                prepared[name] = LINES[name]()
                prepared[name]()
            answer = time_runs(name, prepared[name], count)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def time_runs(name, workload, count):
    """Seconds of a run, on the wall and of CPU."""
    wall_start = perf_counter()
    cpu_start = process_time()
    results = [workload() for _ in range(count)]
    wall = perf_counter() - wall_start
    cpu = process_time() - cpu_start
    if name.startswith(FRESH):
        wall = cpu = sum(results)
    return {"wall": wall / count, "cpu": cpu / count}


class Worker:
    """A process that has the skvalue of one tree."""

    def __init__(self, tree):
        tree = str(Path(tree).resolve())
        self.process = subprocess.Popen(
            [sys.executable, str(HERE), "--work"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **ALLOCATOR, "PYTHONPATH": tree},
        )
        imported_tree = self.process.stdout.readline().strip()
        if imported_tree != tree:
            raise SystemExit(
                f"The skvalue imported is that of {imported_tree or 'nowhere'}, not "
                f"{tree}."
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


class Measurement(NamedTuple):
    """Ratios of this tree over the other and of the other over itself, by pair."""

    ratios: np.ndarray
    control: np.ndarray
    seconds: float  # of the other tree

    @property
    def is_slower(self):
        ratio = np.median(self.ratios)
        return ratio > LIMIT and ratio > self.control.max()


class Comparison:
    """Workers of this tree, of another one, and of the other one again."""

    def __init__(self, tree, n_pairs, clock):
        self.this = Worker(HERE.parents[2])
        self.other = Worker(tree)
        self.other_again = Worker(tree)
        self.n_pairs = n_pairs
        self.clock = clock

    def measure(self, name):
        """The `Measurement` of a line."""
        # The first run of a line prepares it.
        for worker in (self.this, self.other, self.other_again):
            result = worker.run(name)
            if "error" in result:
                raise RuntimeError(result["error"])
            if worker is self.other:
                seconds = max(result["wall"], 1e-4)
        count = 1
        if not name.startswith(FRESH):
            count = max(1, int(np.ceil(MIN_SECONDS / seconds)))

        ratios = []
        control = []
        seconds = []
        for pair in range(self.n_pairs):
            other_first = pair % 2 == 1
            for worker, quotients in ((self.this, ratios), (self.other_again, control)):
                order = [worker, self.other]
                if other_first:
                    order.reverse()
                times = {w: w.run(name, count)[self.clock] for w in order}
                quotients.append(times[worker] / times[self.other])
                seconds.append(times[self.other])
        return Measurement(np.array(ratios), np.array(control), np.median(seconds))

    def close(self):
        for worker in (self.this, self.other, self.other_again):
            worker.close()


def parse_options():
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
    if options.tree is None and not options.work:
        parser.error("name a work tree of the commit to compare with")
    return options


def report(name, measurement):
    """Print a row of the table."""

    def spread(ratios):
        return f"[{ratios.min():.3f}, {ratios.max():.3f}]"

    verdict = "  SLOWER" if measurement.is_slower else ""
    print(
        f"{name:42} {measurement.seconds:8.4f} {np.median(measurement.ratios):6.3f} "
        f"{spread(measurement.ratios):>15} {spread(measurement.control):>15}{verdict}",
        flush=True,
    )


def main():
    options = parse_options()
    if options.work:
        return work()
    start = perf_counter()
    names = [name for name in LINES if re.search(options.pattern, name)]
    if not names:
        raise SystemExit(f"PATTERN must be that of a line. Got {options.pattern!r}.")
    comparison = Comparison(options.tree, options.pairs, options.clock)
    failed = []
    print(f"{'line':42} {'seconds':>8} {'ratio':>6} {'spread':>15} {'control':>15}")
    for name in names:
        try:
            measurement = comparison.measure(name)
        except RuntimeError as error:
            print(f"{name:42} {error}", flush=True)
            failed.append(name)
            continue
        report(name, measurement)
        if measurement.is_slower:
            failed.append(name)
    comparison.close()
    print(
        f"{len(names)} lines, {options.pairs} pairs each, in "
        f"{perf_counter() - start:.0f} s"
    )
    print(f"failed: {', '.join(failed)}" if failed else "no line is slower")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
