"""
Adjusted semivalues, plain ones and other estimators
====================================================

What `adjust` of the semivalue valuers saves, in four tables (`--tables`):

ratios
    Error with adjust=True over that of the same coalitions without, and the same ratio
    as the valuers state it in `values_error_`.
time
    The error of adjust="auto" times the square root of its CPU time, over that of
    adjust=False. Medians over pairs of fits. Where a model takes more than a
    millisecond, both fits take their utilities from a cache that a first fit filled,
    and its time is added to both.
honest
    Stated standard errors over true ones, with adjust=True.
peers
    Root mean squared error to values of many more coalitions, at equal numbers of fits,
    of skvalue, of other estimators (fewer_fits_peers.py) that draw coalitions of their
    own, and of the estimators of shapiq, which may live in an environment of its own
    that can import skvalue. "best of shapiq" is that with the least error, chosen in
    hindsight for each case:

    python examples/reproductions/fewer_fits.py --data FOLDER --shapiq shapiq/bin/python

FOLDER holds the data sets as NAME.npz with X and y; without it, the sets of
scikit-learn. A tenth of the labels of the training rows is wrong. Results are kept in
`--save`, and those found there are not computed again, so that `--cases` and `--tables`
may be run apart.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np
from fewer_fits_peers import BANZHAF_PEERS, BANZHAF_SHAPIQ, PEERS, SHAPIQ
from sklearn import datasets
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from skvalue import SemivalueValuer
from skvalue.games import ModelGame
from skvalue.semivalues import size_weights

MODELS = {
    "logistic": (LogisticRegression(), None),
    "logistic, log-loss": (LogisticRegression(), "neg_log_loss"),
    "KNN": (KNeighborsClassifier(5), None),
    "naive Bayes": (GaussianNB(), None),
    "ridge": (Ridge(), None),
    "tree": (DecisionTreeClassifier(max_depth=5, random_state=0), None),
    "forest": (RandomForestClassifier(10, max_depth=6, random_state=0), None),
}
REGRESSION = ("diabetes", "california_housing", "friedman1", "friedman2", "friedman3")
N_VAL = 300
# Estimators of shapiq that take minutes for 200 rows, however short a fit is.
SLOW_SHAPIQ = ("SVARM", "kADDSHAP")
MOST_ROWS_OF_SLOW = 100


class Case(NamedTuple):
    """A game: data, model and semivalue; rows, fits, and fits of the reference of
    "peers"."""

    data: str
    model: str
    semivalue: str = "shapley"
    n: int = 200
    fits: int = 8000
    reference: int = 100_000

    def __str__(self):
        return f"{self.data}, {self.model}" + (
            ", Banzhaf" if self.semivalue == "banzhaf" else ""
        )

    @property
    def is_slow(self):
        """Whether a fit takes more than a millisecond."""
        return self.model in ("tree", "forest") or (
            self.model.startswith("logistic") and self.data in ("digits", "covertype")
        )


# The cases of "peers".
PEER_CASES = [
    Case("phoneme", "logistic, log-loss"),
    Case("adult", "logistic"),
    Case("breast_cancer", "logistic, log-loss"),
    Case("wine", "logistic", n=100, fits=4000, reference=50_000),
    Case("adult", "naive Bayes"),
    Case("digits", "naive Bayes", reference=50_000),
    Case("adult", "KNN", reference=50_000),
    Case("digits", "KNN", reference=50_000),
    Case("diabetes", "ridge"),
    Case("california_housing", "ridge"),
    Case("phoneme", "tree", n=150, fits=3000, reference=30_000),
    Case("breast_cancer", "tree", n=100, fits=2000, reference=20_000),
    Case("breast_cancer", "forest", n=100, fits=2000, reference=10_000),
    Case("digits", "logistic", n=100, fits=2000, reference=10_000),
    Case("phoneme", "logistic, log-loss", "banzhaf"),
    Case("diabetes", "ridge", "banzhaf"),
    Case("adult", "naive Bayes", "banzhaf"),
    Case("breast_cancer", "tree", "banzhaf", n=100, fits=2000, reference=20_000),
]
# The cases of the other tables: other data sets.
SETS = ("covertype", "cpu", "wind")
REGRESSIONS = ("friedman1", "friedman2", "friedman3")
OWN_CASES = [
    *(
        Case("covertype", model, n=100, fits=4000)
        for model in ("logistic", "logistic, log-loss")
    ),
    *(
        Case(name, model)
        for model in ("logistic", "logistic, log-loss")
        for name in SETS[1:]
    ),
    *(Case(name, "KNN") for name in SETS),
    *(Case(name, "ridge") for name in REGRESSIONS),
    *(Case(name, "tree", n=150, fits=3000) for name in SETS),
    *(Case(name, "forest", n=100, fits=2000) for name in SETS),
]
SETTINGS = {"True": True, "auto": "auto", "False": False}


def load(folder, name, n, seed=0):
    """Standardised rows, a tenth of the labels wrong, and validation rows."""
    rng = np.random.default_rng(seed)
    if name.startswith("friedman"):
        make = getattr(datasets, f"make_{name}")
        X, y = make(
            n + N_VAL, noise=1.0 if name == "friedman1" else 0.1, random_state=seed
        )
    elif hasattr(datasets, f"load_{name}"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    else:
        with np.load(Path(folder) / f"{name}.npz") as file:
            X = file["X"].astype(float)
            y = file["y"]
            X = X[:, ~file["is_cat"]] if "is_cat" in file else X
    y = (
        (y - y.mean()) / y.std()
        if name in REGRESSION
        else np.unique(y, return_inverse=True)[1]
    )
    order = rng.permutation(len(y))[: n + N_VAL]
    X = X[order]
    y = y[order]
    spread = X[:n].std(axis=0)
    X = (X - X[:n].mean(axis=0)) / np.where(spread > 0, spread, 1)
    train = y[:n].copy()
    if name not in REGRESSION:
        train = np.where(rng.random(n) < 0.1, (train + 1) % (y.max() + 1), train)
    known = np.full(len(X) - n, True) if name in REGRESSION else np.isin(y[n:], train)
    return X[:n], train, X[n:][known], y[n:][known]


class Store:
    """Results by name, kept in a file."""

    def __init__(self, path):
        self.path = None if path is None else Path(path)
        self.results = {}
        self.read()

    def read(self):
        if self.path is not None and self.path.exists():
            self.results = json.loads(self.path.read_text())

    def get(self, name, compute, *arguments):
        """The result of this name; computed from the arguments where there is none."""
        key = "/".join(map(str, name))
        if key not in self.results:
            self.results[key] = compute(*arguments)
            if self.path is not None:
                new = self.path.with_suffix(".new")
                new.write_text(json.dumps(self.results))
                os.replace(new, self.path)
        return self.results[key]


# skvalue ------------------------------------------------------------------------------


def valued(case, rows, adjust, fits, seed, checkpoint=None):
    """Values of a fit, their stated standard errors, and seconds of CPU time."""
    X, y, X_val, y_val = rows
    estimator, scoring = MODELS[case.model]
    valuer = SemivalueValuer(
        estimator,
        semivalue=case.semivalue,
        scoring=scoring,
        adjust=adjust,
        max_evaluations=fits,
        checkpoint=checkpoint,
        n_jobs=1,
        random_state=seed,
        sampler="subsets" if case.semivalue == "banzhaf" else "stratified",
    )
    start = process_time()
    valuer.fit(X, y, X_val=X_val, y_val=y_val)
    seconds = process_time() - start
    return {
        "values": valuer.values_.tolist(),
        "errors": valuer.values_error_.tolist(),
        "seconds": seconds,
        "used": bool(adjust and valuer.adjustment_.used),
    }


def own_fits(case, rows, seed):
    """Fits with every setting on the same coalitions; see the table "time" for their
    seconds."""
    settings = SETTINGS.items()
    if not case.is_slow:
        return {
            name: valued(case, rows, value, case.fits, seed) for name, value in settings
        }
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state.npz"
        first = valued(case, rows, False, case.fits, seed, state)["seconds"]
        fits = {}
        for name, value in settings:
            fits[name] = valued(case, rows, value, case.fits, seed, state)
        again = fits["False"]["seconds"]
        for fit in fits.values():
            fit["seconds"] += first - again
    return fits


@cache
def compile_loops(regression):
    """A small fit, so that no time is that of a compilation."""
    case = (
        Case("diabetes", "ridge", n=50)
        if regression
        else Case("wine", "naive Bayes", n=50)
    )
    valued(case, load(None, case.data, case.n), True, 1100, 0)


def own_results(store, folder, cases, replicates):
    """Case -> setting -> results of the replicates, stacked."""
    results = {}
    for case in cases:
        rows = load(folder, case.data, case.n)
        count = replicates or (6 if case.is_slow else 20)
        if f"own/{case}/{count - 1}" not in store.results:
            compile_loops(case.data in REGRESSION)
        fits = [
            store.get(("own", case, seed), own_fits, case, rows, seed)
            for seed in range(count)
        ]
        results[case] = {
            name: {
                key: np.array([fit[name][key] for fit in fits]) for key in fits[0][name]
            }
            for name in SETTINGS
        }
    return results


def dispersion(fits):
    """The true standard error: of the values over replicates, mean over players."""
    return np.sqrt(fits["values"].var(axis=0, ddof=1).mean())


def stated(fits):
    return np.sqrt((fits["errors"] ** 2).mean())


def print_ratios(results):
    print("\nError with adjust=True over that without, same coalitions: true, stated")
    for case, fits in results.items():
        true = dispersion(fits["True"]) / dispersion(fits["False"])
        claim = stated(fits["True"]) / stated(fits["False"])
        print(
            f"{case!s:34}{len(fits['True']['values']):4} {true:6.2f} {claim:6.2f}",
            flush=True,
        )
    for model in dict.fromkeys(case.model for case in results):
        some = [fits for case, fits in results.items() if case.model == model]
        true = np.mean(
            [dispersion(fits["True"]) / dispersion(fits["False"]) for fits in some]
        )
        claim = np.mean([stated(fits["True"]) / stated(fits["False"]) for fits in some])
        print(f"mean of {len(some)}, {model:24}  {true:6.2f} {claim:6.2f}")


def print_time(results):
    print(
        '\nerror x sqrt(CPU time) of adjust="auto" over adjust=False; used; us a '
        "fit, plain"
    )
    for case, fits in results.items():
        auto = fits["auto"]
        plain = fits["False"]
        slower = np.median(auto["seconds"] / plain["seconds"])
        error = dispersion(auto) / dispersion(plain)
        each = 1e6 * np.median(plain["seconds"]) / case.fits
        print(
            f"{case!s:34} error {error:.2f}, time {slower:.2f}: "
            f"{error * np.sqrt(slower):.2f}"
            f"  {auto['used'].mean():.0%} {each:6.0f}",
            flush=True,
        )


def print_honest(results):
    print("\nStated over true standard errors: adjust=True, adjust=False")
    for case, fits in results.items():
        true, plain = (
            stated(fits[name]) / dispersion(fits[name]) for name in ("True", "False")
        )
        print(
            f"{case!s:34}{len(fits['True']['values']):4} {true:6.2f} {plain:6.2f}",
            flush=True,
        )


# Other estimators ---------------------------------------------------------------------


def played(case, rows):
    """The game of a case less its empty utility."""
    X, y, X_val, y_val = rows
    estimator, scoring = MODELS[case.model]
    game = ModelGame(
        estimator,
        X,
        y,
        X_val,
        y_val,
        scoring=scoring,
        random_state=0,
        n_jobs=1,
        cache_size=0,
    )
    return lambda masks: game.utility(masks) - game.empty_utility


def peers_of(case, shapiq):
    """Name -> estimator: those of this case, without the slow ones of shapiq."""
    tables = (
        (PEERS, SHAPIQ)
        if case.semivalue == "shapley"
        else (BANZHAF_PEERS, BANZHAF_SHAPIQ)
    )
    return {
        name: peer
        for name, peer in tables[shapiq].items()
        if not shapiq or case.n <= MOST_ROWS_OF_SLOW or name not in SLOW_SHAPIQ
    }


def best_of_shapiq(squares):
    """The name of the estimator of shapiq with the least error; None if none ran."""
    means = {
        name: x.mean() for name, x in squares.items() if name.startswith("shapiq ")
    }
    return min(means, key=means.get) if means else None


def add_peers(store, case, rows, shapiq, replicates, wanted=None):
    """The values of the other estimators, or of those of shapiq."""
    game = played(case, rows)
    q = size_weights(case.semivalue, case.n)

    def values(peer, seed):
        start = process_time()
        found = peer(game, q, case.fits, np.random.default_rng([seed, 7]))
        return {"values": found.tolist(), "seconds": process_time() - start}

    for name, peer in peers_of(case, shapiq).items():
        for seed in range(replicates if not wanted or name in wanted else 0):
            store.get(("peer", case, title(name, shapiq), seed), values, peer, seed)


def title(name, shapiq):
    return f"shapiq {name}" if shapiq else name


def squared_errors(store, case, name, reference):
    """Mean squared errors of the replicates; the error of the reference is taken
    off."""
    exact = np.array(reference["values"])
    error = np.array(reference["errors"])
    start = f"peer/{case}/{name}/"
    found = [
        fit["values"] for key, fit in store.results.items() if key.startswith(start)
    ]
    if not found:
        return np.zeros(0)
    return ((np.array(found) - exact) ** 2).mean(axis=1) - np.mean(error**2)


def add_results(store, case, args):
    """The reference, and values of skvalue and of the other estimators; returns the
    reference."""
    rows = load(args.data, case.data, case.n)
    count = args.replicates or (4 if case.is_slow else 6)
    reference = store.get(
        ("reference", case), valued, case, rows, False, case.reference, 12345
    )
    for seed in range(
        count if not args.estimators or "skvalue" in args.estimators else 0
    ):
        if f"peer/{case}/True/{seed}" not in store.results:
            for name, fit in own_fits(case, rows, seed).items():
                store.get(("peer", case, name, seed), dict, fit)
    add_peers(store, case, rows, False, count, args.estimators)
    if args.shapiq is not None:
        work_apart(store, case, count, args)
    return reference


def _verdict(ratio, off):
    """1 if a ratio of errors is above one by more than its error, -1 if below, or 0."""
    if ratio * (1 - off) > 1:
        return 1
    if ratio * (1 + off) < 1:
        return -1
    return 0


def print_peers(store, cases, args):
    """RMSE over that of skvalue; counts of cases won, equal and lost."""
    counts = {}
    print('\nRMSE over that of adjust=True or "auto"; False, True and auto are skvalue')
    for case in cases:
        reference = add_results(store, case, args)
        names = [*SETTINGS, *peers_of(case, False)]
        names += [title(name, True) for name in peers_of(case, True)]
        squares = {name: squared_errors(store, case, name, reference) for name in names}
        squares = {name: x for name, x in squares.items() if len(x)}
        # Replicates are few, so all estimators share one coefficient of variation of
        # the squares.
        many = [x for x in squares.values() if len(x) > 1]
        spread = (
            np.sqrt(np.mean([x.var(ddof=1) / x.mean() ** 2 for x in many]))
            if many
            else np.inf
        )
        print(
            f"\n{case}: n={case.n}, {case.fits} fits; two standard errors of a "
            f"replicate's error:"
        )
        print(f"  {spread:.0%}")
        best = best_of_shapiq(squares)
        if best is not None:
            print(f"  best of shapiq: {best}")
            squares["best of shapiq"] = squares[best]
        for ours in ("True", "auto") if "True" in squares else ():
            base = squares[ours]
            line = []
            for name, x in squares.items():
                if name != ours:
                    ratio = np.sqrt(max(x.mean(), 0) / base.mean())
                    off = spread * np.sqrt(1 / len(x) + 1 / len(base))
                    verdict = _verdict(ratio, off)
                    counts.setdefault((ours, name), []).append((verdict, case))
                    line.append(f"{name} {ratio:.2f} +- {ratio * off:.2f}")
            print(
                f"  {ours} {np.sqrt(base.mean()):.2e}: " + ", ".join(line), flush=True
            )
    print("\nCases in which skvalue has the lower error, an equal one, the higher one")
    for (ours, name), found in counts.items():
        kinds = [sum(v == k for v, _ in found) for k in (1, 0, -1)]
        lost = "; ".join(str(case) for v, case in found if v == -1)
        print(
            f"  adjust={ours:5} {name:30} {kinds[0]:3} {kinds[1]:3} {kinds[2]:3}  "
            f"{lost}"
        )


def work_apart(store, case, replicates, args):
    """Have the Python that has shapiq add its values to the file of results."""
    if store.path is None:
        raise SystemExit("--shapiq needs --save: the other process writes there.")
    command = [args.shapiq, __file__, "--work", str(case), "--save", str(store.path)]
    command += ["--replicates", str(replicates)]
    for name, value in (("--data", [args.data]), ("--estimators", args.estimators)):
        command += [name, *value] if value and value[0] else []
    root = Path(sys.modules["skvalue"].__file__).parents[1]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(root)})
    store.read()


def chosen(cases, wanted, folder):
    """The cases whose name contains one of the words; without a folder, those of
    scikit-learn."""
    here = [
        c
        for c in cases
        if folder or hasattr(datasets, f"load_{c.data}") or "fried" in c.data
    ]
    return [
        case for case in here if not wanted or any(word in str(case) for word in wanted)
    ]


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", metavar="FOLDER", help="folder of NAME.npz")
    parser.add_argument("--shapiq", metavar="PYTHON", help="a Python that has shapiq")
    parser.add_argument(
        "--cases", nargs="*", metavar="WORDS", help="parts of the names of cases"
    )
    parser.add_argument(
        "--estimators", nargs="*", metavar="NAME", help="skvalue, SVARM, ..."
    )
    parser.add_argument("--replicates", type=int, help="of every fit")
    parser.add_argument("--save", metavar="FILE", help="JSON of the results")
    tables = ("ratios", "time", "honest", "peers")
    parser.add_argument("--tables", nargs="*", choices=tables, default=tables)
    parser.add_argument("--work", metavar="CASE", help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    store = Store(args.save)
    if args.work:
        case = next(case for case in PEER_CASES if str(case) == args.work)
        rows = load(args.data, case.data, case.n)
        add_peers(store, case, rows, True, args.replicates, args.estimators)
        return
    if set(args.tables) - {"peers"}:
        cases = chosen(OWN_CASES, args.cases, args.data)
        results = own_results(store, args.data, cases, args.replicates)
        for name, show in zip(tables, (print_ratios, print_time, print_honest)):
            if name in args.tables:
                show(results)
    if "peers" in args.tables:
        cases = chosen(PEER_CASES, args.cases, args.data)
        print_peers(store, cases, args)


if __name__ == "__main__":
    main()
