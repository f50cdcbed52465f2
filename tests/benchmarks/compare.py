"""Time of this work tree beside that of another, line by line of a table of workloads.

    python tests/benchmarks/compare.py OTHER_TREE [-k PATTERN] [--pairs 9]

OTHER_TREE is a work tree of another commit (``git worktree add``). For each line this tree and the
other run in turn, and so does, beside each pair, the other with itself: the control, which shows
what the machine does to ratios. A line fails if its median ratio exceeds 1.05 and the largest ratio
of its control. Exits 1 if any fails.

Trees stay imported in processes of their own, which run a line once before it is timed, so that
nothing is compiled and no data are made within the time. The lines are the workloads of
tests/benchmarks on skvalue's own side, each so small that a run takes 0.05 to 0.5 seconds.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter, process_time, sleep

import numpy as np

HERE = Path(__file__).resolve()
LIMIT = 1.05
LEAST = 0.05  # seconds; shorter runs are repeated within one measurement
PAUSE = 0.03  # idle BLAS threads spin for a while, and would take a core from who comes next


# The lines: name -> a function that prepares and returns what is timed ----------------------------

LINES = {}


def line(name, prepare, *args, **params):
    LINES[name] = partial(prepare, *args, **params)


def rows(n, n_val, d, n_classes=2, dtype=np.float32):
    rng = np.random.default_rng(0)
    X, X_val = (rng.standard_normal((size, d)).astype(dtype) for size in (n, n_val))
    y, y_val = (rng.integers(0, n_classes, size) for size in (n, n_val))
    return dict(X=X, y=y, X_val=X_val, y_val=y_val)


def learnable(n, d, n_val=500, target="classes"):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + n_val, d))
    margin = X @ rng.standard_normal(d) + 2 * rng.standard_normal(n + n_val)
    y = (margin > 0).astype(int) if target == "classes" else margin
    return dict(X=X[:n], y=y[:n], X_val=X[n:], y_val=y[n:])


def fit(name, data, *args, fit=None, **params):
    """Fits of a valuer."""
    import skvalue

    data = data() | (fit or {})
    return lambda: getattr(skvalue, name)(*args, **params).fit(**data)


def neighbours():
    radii = {("euclidean", 32): 7.0, ("euclidean", 512): 31.0}
    for d, n, n_val in ((32, 20_000, 250), (512, 20_000, 100)):
        data = partial(rows, n, n_val, d)
        for metric in ("euclidean", "cosine"):
            radius = radii.get((metric, d), 0.9)
            line(f"TKNN {metric}, d={d}", fit, "TKNNShapleyValuer", data, radius, metric=metric)
            line(f"KNN {metric}, d={d}", fit, "KNNShapleyValuer", data, metric=metric)
    double = partial(rows, 10_000, 200, 32, dtype=np.float64)
    line("KNN float64", fit, "KNNShapleyValuer", double)
    line("TKNN float64", fit, "TKNNShapleyValuer", double, 7.0, metric="euclidean")
    line("KNN one thread", fit, "KNNShapleyValuer", double, n_jobs=1)
    line("KNN leave-one-out", leave_one_out, "KNNShapleyValuer", 5)
    line("TKNN leave-one-out", leave_one_out, "TKNNShapleyValuer", 0.9)
    line("KNN regression", fit, "KNNShapleyValuer", partial(learnable, 10_000, 20, 200, "targets"))
    for engine in ("numba", "torch", "faiss"):
        data = partial(rows, 10_000, 100, 32)
        options = dict(engine=engine, device="cpu")
        if engine != "faiss":  # FAISS searches for few neighbours; a search for all takes long
            line(f"KNN by {engine}", fit, "KNNShapleyValuer", data, **options)
        line(
            f"KNN, max_rank=50, by {engine}", fit, "KNNShapleyValuer", data, max_rank=50, **options
        )
        line(f"TKNN by {engine}", fit, "TKNNShapleyValuer", data, 0.6, **options)
    for name, argument in (("KNN", 5), ("TKNN", 0.9)):
        cls = f"{name}ShapleyValuer"
        line(f"{name} of sparse rows", sparse_rows, cls, argument)
        line(f"{name} of a file", of_a_file, cls, argument)
        line(f"{name}, new rows", new_rows, cls, argument)
        line(f"{name}, validation_error_", inference, cls, argument)
    for n_classes in (2, 5):
        data = partial(rows, 20_000, 200, 512, n_classes)
        line(f"private TKNN, {n_classes} classes", fit, "TKNNShapleyValuer", data, 0.9, epsilon=1.0)
    data = partial(rows, 20_000, 200, 32)
    line("private TKNN, capped", fit, "TKNNShapleyValuer", data, 0.6, epsilon=1.0,
         max_contributions=5)  # fmt: skip
    line("private TKNN, raw", fit, "TKNNShapleyValuer", data, 0.6, epsilon=1.0, denoise=False)


def leave_one_out(name, argument):
    import skvalue

    data = rows(2000, 1, 32)
    return lambda: getattr(skvalue, name)(argument, metric="cosine").fit(data["X"], data["y"])


def sparse_rows(name, argument):
    """Texts of about 50 words each, of a vocabulary of 30,000."""
    from scipy import sparse

    import skvalue

    rng = np.random.default_rng(0)
    X = sparse.random_array((5100, 30_000), density=50 / 30_000, format="csr", rng=rng)
    X, y = X.astype(np.float32), rng.integers(0, 2, 5100)
    valuer = getattr(skvalue, name)(argument, metric="cosine")
    return lambda: valuer.fit(X[100:], y[100:], X_val=X[:100], y_val=y[:100])


def of_a_file(name, argument):
    import skvalue

    data = rows(10_000, 200, 32)
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "rows.npy"
    np.save(path, data["X"])
    data["X"] = np.load(path, mmap_mode="r")
    valuer = getattr(skvalue, name)(argument, metric="cosine")

    def run(folder=folder):  # the folder lives as long as the line
        valuer.fit(**data)

    return run


def new_rows(name, argument):
    import skvalue

    data = rows(5000, 100, 32)
    valuer = getattr(skvalue, name)(argument, metric="cosine").fit(**data)
    X = rows(200, 1, 32)["X"] + 1
    return lambda: valuer.transform(X)


def inference(name, argument):
    """What is worked out at the first question after a fit, with the fit."""
    import skvalue

    data = rows(10_000, 200, 32)
    valuer = getattr(skvalue, name)(argument, metric="cosine")
    return lambda: valuer.fit(**data).validation_error_


def coalitions(n, kind, count=1000):
    """The prefixes of orders, one order after the other; or random ones."""
    rng = np.random.default_rng(1)
    if kind == "random":
        return rng.random((count, n)) < 0.5
    places = np.argsort([rng.permutation(n) for _ in range(-(-count // n))], axis=1)
    masks = places[:, None, :] <= np.arange(n)[None, :, None]
    return masks.reshape(-1, n)


def play(estimator, n, d, kind, count, target="classes", **params):
    from skvalue.games import ModelGame

    data, masks = learnable(n, d, target=target), coalitions(n, kind, count)
    return lambda: ModelGame(estimator(), **data, n_jobs=1, cache_size=0, **params).utility(masks)


def estimator(name):
    """A function that makes an estimator: nothing of scikit-learn is imported before it is due."""
    from sklearn import linear_model, naive_bayes, neighbors, tree

    for module in (linear_model, naive_bayes, neighbors, tree):
        if hasattr(module, name):
            return getattr(module, name)()


def games():
    for kind in ("orders", "random"):
        for n, d in ((100, 10), (300, 20), (500, 50)):
            line(f"game of logistic, n={n}, {kind}", play, partial(estimator, "LogisticRegression"),
                 n, d, kind, 1000 if n < 500 else 500)  # fmt: skip
        for name, target in (
            ("Ridge", "targets"), ("LinearRegression", "targets"), ("NearestCentroid", "classes"),
            ("GaussianNB", "classes"), ("KNeighborsClassifier", "classes"),
        ):  # fmt: skip
            line(f"game of {name}, {kind}", play, partial(estimator, name), 300, 20, kind, 900,
                 target)  # fmt: skip
    line("game of trees, the loop", play, partial(estimator, "DecisionTreeClassifier"), 300, 20,
         "random", 15)  # fmt: skip
    line("game of logistic, torch", play, partial(estimator, "LogisticRegression"), 200, 10,
         "random", 200, batch="torch", device="cpu")  # fmt: skip
    line("game of the stable logistic", stable_game)


def stable_game():
    from skvalue.games import StableLogisticGame

    data, masks = learnable(100, 20), coalitions(100, "orders")
    return lambda: StableLogisticGame(**data, n_jobs=1).utility(masks)


def semivalues():
    data = partial(learnable, 200, 10)
    for name, options in {
        "Data Shapley": dict(semivalue="shapley"),
        "Data Banzhaf": dict(semivalue="banzhaf", sampler="subsets"),
        "Beta Shapley": dict(semivalue=(4, 1)),
        "permutation": dict(sampler="permutation"),
        "antithetic": dict(sampler="antithetic"),
        "truncated": dict(sampler="antithetic", truncation=0.02),
    }.items():
        line(f"semivalues, {name}", fit, "SemivalueValuer", data, max_evaluations=1600, n_jobs=1,
             random_state=0, **options)  # fmt: skip
    line("semivalues, the loop", fit, "SemivalueValuer", data, batch="never", sampler="stratified",
         max_evaluations=150, n_jobs=1, random_state=0)  # fmt: skip
    line("leave-one-out", fit, "LeaveOneOutValuer", partial(learnable, 300, 20))
    line("exact, 12 rows", fit, "SemivalueValuer", partial(learnable, 12, 3), sampler="exact")
    line("Data-OOB", out_of_bag)


def out_of_bag():
    from skvalue import DataOOBValuer

    data = learnable(300, 20)
    valuer = DataOOBValuer(n_estimators=40, n_jobs=1, random_state=0)
    return lambda: valuer.fit(data["X"], data["y"])


def diabetes():
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], (y > np.median(y)).astype(int)[order]
    return dict(X=X[:300], y=y[:300], X_val=X[300:], y_val=y[300:])


def gradients():
    cls = "GradientSemivalueValuer"
    line("gradients", fit, cls, diabetes, "logistic", n_permutations=60, random_state=0)
    line("gradients, softmax", fit, cls, partial(learnable, 200, 20), "softmax", n_permutations=30)
    line("gradients, groups", fit, cls, partial(learnable, 1000, 20), n_permutations=60,
         fit=dict(groups=np.arange(1000) % 50))  # fmt: skip
    line("gradients, components", fit, cls, diabetes, n_permutations=60, n_components=3,
         clip="median")  # fmt: skip
    for noise in ("iid", "correlated", "optimal"):
        line(f"private gradients, {noise}", fit, cls, diabetes, "logistic", n_permutations=120,
             noise_multiplier=0.05, noise=noise, burn_in=0.0, learning_rate=0.05)  # fmt: skip
    line("private gradients, example", fit, cls, partial(learnable, 1000, 20), n_permutations=60,
         epsilon=1.0, unit="example", learning_rate=0.1,
         fit=dict(groups=np.arange(1000) % 50))  # fmt: skip
    line("gradients, convolution", convolution)
    line("federated", fit, "FederatedSemivalueValuer", partial(learnable, 1000, 20), n_rounds=100,
         learning_rate=0.1, random_state=0, fit=dict(groups=np.arange(1000) % 20))  # fmt: skip
    line("private federated", fit, "FederatedSemivalueValuer", partial(learnable, 1000, 20),
         n_rounds=100, learning_rate=0.1, epsilon=1.0, random_state=0,
         fit=dict(groups=np.arange(1000) % 20))  # fmt: skip


def convolution():
    import torch

    from skvalue import GradientSemivalueValuer

    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(16 * 9, 10),
    )
    rng = np.random.default_rng(0)
    X, y = rng.random((80, 1, 8, 8), dtype=np.float32), np.arange(80) % 10
    valuer = GradientSemivalueValuer(
        network, n_permutations=4, learning_rate=0.1, device="cpu", random_state=0
    )
    return lambda: valuer.fit(X[:40], y[:40], X_val=X[40:], y_val=y[40:])


def layers():
    for design in ("blocks", "iid", "poisson"):
        for name, options in (("l2", dict(l2=1.0)), ("logistic", dict(scoring="neg_log_loss"))):
            line(f"layers, {design}, {name}", layered, design=design, max_evaluations=2000,
                 **options)  # fmt: skip
    line("private layers", layered, l2=1.0, n_layers=3, tol=0.2, epsilon=1.0, release="all")


def layered(**params):
    from sklearn.linear_model import LogisticRegression

    from skvalue import LayeredShapleyValuer

    data = learnable(100 if params.get("design") == "blocks" else 30, 50)
    if "scoring" in params:
        params["estimator"] = LogisticRegression()
    return lambda: LayeredShapleyValuer(random_state=0, **params).fit(**data)


def parties():
    for n in (3, 10):
        line(f"{n} parties", surprise, n)
    line("parties' releases", releases, 15)
    line("PriArTa, summaries", summaries)
    line("PriArTa, sellers", sellers)
    line("PriArTa, buyer", buyer)


def releases(n):
    """Linear parties of two features; the noise comes from seeds."""
    from skvalue.collaborative import GramRelease

    rng = np.random.default_rng(1)
    w, held = np.array([0.3, -0.4]), []
    for count in range(80, 80 + 20 * n, 20):
        X = np.sqrt(0.15) * rng.standard_normal((count, 2))
        held.append((X, X @ w + 0.16 * rng.standard_normal(count)))
    epsilons = np.linspace(0.1, 0.5, n)
    return lambda: [
        GramRelease(None, renyi_epsilon=epsilon, noise_random_state=i).fit(*part).release_
        for i, (part, epsilon) in enumerate(zip(held, epsilons))
    ]


def surprise(n):
    from skvalue.collaborative import BayesianLinear, BayesianSurpriseScorer

    sent = releases(n)()
    model = BayesianLinear(0.105, a0=20, b0=0.5, x_covariance=0.15 * np.eye(2))
    options = {"n_particles": 150 if n == 3 else 40, "min_ess": 1}
    return lambda: BayesianSurpriseScorer(model, random_state=0, **options).fit(sent)


def summaries(n_sellers=30, d=64):
    from skvalue.priarta import PriArTaScorer, SellerRelease

    rng = np.random.default_rng(0)
    scorer = PriArTaScorer(max_norm=8.0).fit(rng.normal(size=(500, d)))
    made = SellerRelease(scorer.model_, 0.8).fit(rng.normal(size=(100, d))).summary_
    spread = rng.normal(size=(n_sellers, len(made.moment))) * 0.1 * made.noise.moment
    moments = made.moment + spread
    return lambda: scorer.score_summaries([replace(made, moment=moment) for moment in moments])


def sellers(n_sellers=40, d=64):
    from skvalue.priarta import PriArTaScorer, SellerRelease

    rng = np.random.default_rng(0)
    model = PriArTaScorer(max_norm=8.0).fit(rng.normal(size=(500, d))).model_
    held = rng.normal(size=(n_sellers, 200, d))
    return lambda: [SellerRelease(model, 0.8).fit(X).summary_ for X in held]


def buyer():
    from skvalue.priarta import PriArTaScorer

    X = np.random.default_rng(0).normal(size=(1000, 32))
    return lambda: PriArTaScorer("pca", epsilon=1.0).fit(X)


def selection():
    line("a grid over drop", grid, None)
    line("a grid over drop, with memory", grid, True)
    line("filter", filtered)


def grid(memory):
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    from skvalue import KNNShapleyValuer
    from skvalue.selection import ValueFilteredClassifier

    rng = np.random.default_rng(0)
    y = rng.integers(2, size=600)
    X = rng.normal(size=(len(y), 20)) + y[:, None]

    def search():
        with tempfile.TemporaryDirectory() as folder:
            store = folder if memory else None
            valuer = KNNShapleyValuer(n_jobs=1)
            model = ValueFilteredClassifier(LogisticRegression(), valuer, memory=store)
            GridSearchCV(model, {"drop": [0, 0.05, 0.1, 0.2]}, cv=3).fit(X, y)

    return search


def filtered():
    from skvalue import KNNShapleyValuer, ValueFilter

    data = rows(5000, 200, 32)
    return lambda: ValueFilter(KNNShapleyValuer(), drop=0.1).fit_resample(**data)


IMPORT = "from time import perf_counter as now; t = now(); {}; print(now() - t)"


def imports():
    for what in ("import skvalue", "from skvalue import KNNShapleyValuer"):
        line(f"fresh: {what}", in_a_fresh_interpreter, IMPORT.format(what))


def in_a_fresh_interpreter(code):
    """Seconds that the interpreter measures itself; its start is not among them."""

    def run():
        command = [sys.executable, "-c", code]
        return float(subprocess.run(command, capture_output=True, check=True, text=True).stdout)

    return run


for table in (imports, neighbours, games, semivalues, gradients, layers, parties, selection):
    table()


# Workers ------------------------------------------------------------------------------------------


def work():
    """Serve: read a line's name and how often to run it, write the seconds that a run took."""
    prepared, answers = {}, os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a fit prints does not come between
    warnings.simplefilter("ignore")
    import skvalue

    print(str(Path(skvalue.__file__).parents[1]), file=answers, flush=True)
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
            print(json.dumps({"wall": wall / count, "cpu": cpu / count}), file=answers, flush=True)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            print(json.dumps({"error": text}), file=answers, flush=True)


class Worker:
    """A process that has the skvalue of one tree."""

    def __init__(self, tree):
        self.process = subprocess.Popen(
            [sys.executable, str(HERE), "--work"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(tree).resolve())},
        )
        where = self.process.stdout.readline().strip()
        if where != str(Path(tree).resolve()):
            raise SystemExit(f"The skvalue imported is that of {where or 'nowhere'}, not {tree}.")

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
    """Ratios of this tree over the other, and of the other over itself; seconds of the other."""
    first = [worker.run(name) for worker in (this, other, again)]  # prepares
    for result in first:
        if "error" in result:
            return None, None, result["error"]
    count = max(1, int(np.ceil(LEAST / max(first[1]["wall"], 1e-4))))
    count = 1 if name.startswith("fresh: ") else count
    ratios, control, seconds = [], [], []
    for pair in range(pairs):
        for left, found in ((this, ratios), (again, control)):
            both = [left, other] if pair % 2 == 0 else [other, left]
            times = {worker: worker.run(name, count)[clock] for worker in both}
            found.append(times[left] / times[other])
            seconds.append(times[other])
    return np.array(ratios), np.array(control), float(np.median(seconds))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tree", nargs="?", help="a work tree of the commit to compare with")
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
    this, other, again = map(Worker, (HERE.parents[2], options.tree, options.tree))
    start, failed = perf_counter(), []
    print(f"{'line':42} {'seconds':>8} {'ratio':>6} {'spread':>15} {'control':>15}")
    for name in names:
        ratios, control, seconds = measure(name, this, other, again, options.pairs, options.clock)
        if ratios is None:
            print(f"{name:42} {seconds}", flush=True)
            failed.append(name)
            continue
        ratio = np.median(ratios)
        slower = ratio > LIMIT and ratio > control.max()
        spreads = [f"[{part.min():.3f}, {part.max():.3f}]" for part in (ratios, control)]
        end = "  SLOWER" if slower else ""
        print(f"{name:42} {seconds:8.4f} {ratio:6.3f} {spreads[0]:>15} {spreads[1]:>15}{end}",
              flush=True)  # fmt: skip
        if slower:
            failed.append(name)
    for worker in (this, other, again):
        worker.close()
    print(f"{len(names)} lines, {options.pairs} pairs each, in {perf_counter() - start:.0f} s")
    print(f"failed: {', '.join(failed)}" if failed else "no line is slower")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
