"""
One library values problems, in an environment of its own
=========================================================

other_libraries.py runs this file under the interpreter of the library's environment:

    PYTHON other_libraries_worker.py LIBRARY jobs.json

A job names a method, a problem (an npz file) and the place for its values (.npy) and
report (.json): the CPU seconds of the call itself, which other programs hardly change,
the median and the quartiles of eleven calls if the first took less than a second, of
three if less than ten, and the peak memory beyond the data.
Imports, containers for the data and a warm-up on a few rows come before the clock
starts. A job that ends in an exception reports its first line.

Each function below prepares a library's documented call and returns it, to be timed.
"""

import json
import os
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import numpy as np


def skvalue_knn(p, k, utility="original", n_jobs=1):
    from skvalue import KNNShapleyValuer

    valuer = KNNShapleyValuer(k, utility=utility, n_jobs=n_jobs)
    return lambda: valuer.fit(p.X, p.y, X_val=p.X_val, y_val=p.y_val).values_


def skvalue_by_each_other(p, k, n_jobs=1):
    from skvalue import KNNShapleyValuer

    valuer = KNNShapleyValuer(k, utility="original", cv="leave-one-out", n_jobs=n_jobs)
    return lambda: valuer.fit(p.X, p.y).values_


def skvalue_tknn(p, radius, n_jobs=1):
    from skvalue import TKNNShapleyValuer

    valuer = TKNNShapleyValuer(radius, metric="euclidean", n_jobs=n_jobs)
    return lambda: valuer.fit(p.X, p.y, X_val=p.X_val, y_val=p.y_val).values_


def skvalue_weighted(p, k, n_jobs=1):
    from skvalue import KNNShapleyValuer

    valuer = KNNShapleyValuer(k, utility="hard", weights="distance", n_jobs=n_jobs)
    return lambda: valuer.fit(p.X, p.y, X_val=p.X_val, y_val=p.y_val).values_


def pydvl_knn(p, k, n_jobs=1):
    from joblib import parallel_config
    from pydvl.valuation import Dataset, KNNShapleyValuation
    from sklearn.neighbors import KNeighborsClassifier

    train = Dataset(p.X, p.y)
    test = Dataset(p.X_val, p.y_val)

    def work():
        with parallel_config(n_jobs=n_jobs):
            valuation = KNNShapleyValuation(
                KNeighborsClassifier(k), test, progress=False
            )
            return valuation.fit(train).result.values

    return work


def opendataval_data(p):
    """Tensors and one-hot labels; what is no array of numbers is handed over as it
    is."""
    import torch

    if not (isinstance(p.X, np.ndarray) and p.y.dtype.kind == "i"):
        return p.X, p.y, p.X_val, p.y_val
    codes = np.eye(max(p.y.max(), p.y_val.max()) + 1)
    given = p.X, codes[p.y], p.X_val, codes[p.y_val]
    return [torch.tensor(array, dtype=torch.float) for array in given]


def opendataval_knn(p, k, batch_size=32):
    from opendataval.dataval import KNNShapley

    evaluator = KNNShapley(k_neighbors=k, batch_size=batch_size).input_data(
        *opendataval_data(p)
    )
    return lambda: evaluator.train_data_values().evaluate_data_values()


def dattri_knn(p, k):
    import torch
    from dattri.algorithm.data_shapley import KNNShapleyAttributor
    from torch.utils.data import DataLoader, TensorDataset

    def loader(X):
        rows = X.shape[0]
        if isinstance(X, np.ndarray):
            X = TensorDataset(torch.tensor(X, dtype=torch.float))
        return DataLoader(X, batch_size=rows)

    labels = p.y.tolist(), p.y_val.tolist()
    loaders = loader(p.X), loader(p.X_val)
    attributor = KNNShapleyAttributor(k_neighbors=k)
    return lambda: attributor.attribute(*loaders, *labels).mean(dim=0).numpy()


def shapiq_sum(explainer, model, p, n_jobs):
    """The mean over the points; an explainer is bound to one class."""

    def work():
        total = np.zeros(len(p.y))
        for index, label in enumerate(model.classes_):
            points = p.X_val[p.y_val == label]
            if points.shape[0]:
                found = explainer(model, class_index=index).explain_X(
                    points, n_jobs=n_jobs
                )
                for values in found:
                    total += values.get_n_order_values(1)
        return total / len(p.y_val)

    return work


def shapiq_knn(p, k, n_jobs=None):
    from shapiq.explainer.nn import KNNExplainer
    from sklearn.neighbors import KNeighborsClassifier

    return shapiq_sum(KNNExplainer, KNeighborsClassifier(k).fit(p.X, p.y), p, n_jobs)


def shapiq_weighted(p, k, n_jobs=None):
    from shapiq.explainer.nn import WeightedKNNExplainer
    from sklearn.neighbors import KNeighborsClassifier

    model = KNeighborsClassifier(k, weights="distance").fit(p.X, p.y)
    return shapiq_sum(WeightedKNNExplainer, model, p, n_jobs)


def shapiq_tknn(p, radius, n_jobs=None):
    from shapiq.explainer.nn import ThresholdNNExplainer
    from sklearn.neighbors import RadiusNeighborsClassifier

    model = RadiusNeighborsClassifier(radius).fit(p.X, p.y)
    return shapiq_sum(ThresholdNNExplainer, model, p, n_jobs)


def cleanlab_by_each_other(p, k):
    from cleanlab.data_valuation import data_shapley_knn

    return lambda: 2 * data_shapley_knn(p.y, features=p.X, k=k, metric="euclidean") - 1


def datascope_knn(p, k):
    from datascope.importance import SklearnModelAccuracy
    from datascope.importance.shapley import ShapleyImportance
    from sklearn.neighbors import KNeighborsClassifier

    utility = SklearnModelAccuracy(KNeighborsClassifier(k))
    importance = ShapleyImportance(method="neighbor", utility=utility, nn_k=k)
    return lambda: np.asarray(importance.fit(p.X, p.y).score(p.X_val, p.y_val))


# Library -> method -> function; the distribution's name is the library's.
METHODS = {
    "skvalue": {
        "knn": skvalue_knn,
        "by each other": skvalue_by_each_other,
        "tknn": skvalue_tknn,
        "weighted": skvalue_weighted,
    },
    "pydvl": {"knn": pydvl_knn},
    "opendataval": {"knn": opendataval_knn},
    "shapiq": {"knn": shapiq_knn, "tknn": shapiq_tknn, "weighted": shapiq_weighted},
    "cleanlab": {"by each other": cleanlab_by_each_other},
    "dattri": {"knn": dattri_knn},
    "datascope": {"knn": datascope_knn},
}


def processes():
    """This process and its descendants; empty where there is no /proc."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(
                path.read_text().rpartition(")")[2].split()[1]
            )
        except OSError:  # it has ended
            continue
    found = [os.getpid()] if parents else []
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def resident(pid, field):
    """Bytes of a process: VmRSS now, VmHWM at its peak."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return 1024 * next(
            int(line.split()[1]) for line in lines if line.startswith(field)
        )
    except (OSError, StopIteration):  # it has ended
        return 0


def measure(work):
    """Values, CPU seconds of all threads, and the bytes by which memory rose."""
    before = {}
    for pid in processes():
        Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak starts anew
        before[pid] = resident(pid, "VmRSS")
    start = time.process_time()
    values = work()
    seconds = time.process_time() - start
    peaks = [resident(pid, "VmHWM") - before.get(pid, 0) for pid in processes()]
    return values, seconds, sum(peaks) if before else None


def few(p):
    """A problem of a few rows of every class, to warm up."""
    rows = np.concatenate(
        [np.flatnonzero(p.y == label)[:30] for label in np.unique(p.y)]
    )
    return SimpleNamespace(
        X=p.X[rows], y=p.y[rows], X_val=p.X_val[:6], y_val=p.y_val[:6]
    )


def run(library, job):
    if job["method"] == "expectation":
        from other_libraries_expectations import EXPECTATIONS

        return {"answer": EXPECTATIONS[library][job["parameters"]["what"]]()}
    with np.load(job["problem"]) as arrays:
        p = SimpleNamespace(**arrays)
    method = METHODS[library][job["method"]]
    if job["warm_up"]:
        method(few(p), **job["parameters"])()
    values, *measured = measure(work := method(p, **job["parameters"]))
    times = [measured[0]]
    if job["warm_up"] and times[0] < 10:
        times += [measure(work)[1] for _ in range(2 if times[0] > 1 else 10)]
    np.save(Path(job["report"]).with_suffix(".npy"), np.asarray(values, dtype=float))
    return {
        "seconds": float(np.median(times)),
        "quartiles": np.quantile(times, [0.25, 0.75]).tolist(),
        "calls": len(times),
        "bytes": measured[1],
    }


def first_line(error):
    text = str(error).strip().splitlines()
    return (
        f"{type(error).__name__}: {text[0].strip()}" if text else type(error).__name__
    )


def main(library, jobs, run=run):
    """Run the jobs of a file, and write a report of each."""
    warnings.filterwarnings("ignore")
    about = {
        "version": version(library),
        "python": sys.version.split()[0],
        "numpy": np.__version__,
    }
    for job in json.loads(Path(jobs).read_text()):
        try:
            report = run(library, job)
        except Exception as error:
            report = {"error": first_line(error)}
        Path(job["report"]).write_text(json.dumps({**about, **report}))


if __name__ == "__main__":
    main(*sys.argv[1:])
