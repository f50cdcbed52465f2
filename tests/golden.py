"""Golden values: what every estimator computes on one commit, beside another, on one machine.

    python tests/golden.py run OTHER_TREE              # both trees, then compares
    python tests/golden.py write FILE.npz              # the skvalue that is importable
    python tests/golden.py compare OLD.npz NEW.npz

OTHER_TREE is a work tree of another commit (``git worktree add``), taken as the old one; this
script, of the new tree, runs on both. Exits 1 if a float64 number differs by more than 1e-12 (of
max(1, |number|)), one of an engine that computes in float32 by more than 1e-6, a privacy event, a
report or any other fact in words differs, or something old is lost. Of errors the type must agree;
other messages are listed. No numbers are committed: they depend on the machine.

``-k PATTERN`` takes the cases whose name matches. ``--except 'PATTERN=TOLERANCE'`` gives the fields
(case/field) that match another tolerance, for a difference that is meant; ``inf`` takes anything,
other words included. ``--gone PATTERN`` says of what may be lost that it is meant, too. What is
meant is in EXCEPTIONS and GONE.
"""

import argparse
import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from functools import partial
from inspect import isclass, signature
from numbers import Number
from pathlib import Path
from time import process_time

import numpy as np

# Values of parameters that were renamed: new name -> the name on older commits, which `make` takes
# where the new one is not known. (The constructor of CoreSet took `judges` in place of X_val and
# y_val: core sets are made by `LayeredShapleyValuer.core_sets` here, which both have.)
RENAMED = {
    ("LayeredShapleyValuer", "design"): {"poisson": "paper"},
    ("LayeredShapleyValuer", "allocation"): {"bound": "paper"},
    ("layer_counts", "allocation"): {"bound": "paper"},
}
# What differs from commit 49699b5 on purpose. Fields that may be lost:
GONE = "neighbors_nbytes_|^seller .*/plan/(mean|moment)$"  # a plan has no moments
# Fields with another tolerance, by their first pattern that matches:
EXCEPTIONS = [
    # Private gradients are rounded to a grid of at most 2^-20 of the noise's scale.
    ("^gradient .*(private|noise multiplier|gradient_variance)", 1e-6),
    # Random orders of more than 12 parties are those of skvalue.samplers.
    ("^surprise many/", np.inf),
    # A training that runs elsewhere shows no validation points: its report says what is public.
    ("^federated elsewhere.*/privacy_/(facts|text)$", np.inf),
    # The fields of a summary's file come in another order; the numbers are compared as `seller`.
    ("^priarta .*/json/", np.inf),
    # Of max_evaluations=60, 60 coalitions are evaluated in place of 33.
    ("^(Data(Shapley|Banzhaf)Valuer tree|semivalue workers)", np.inf),
]
# Sentences of reports that were false or unclear, and what they say now.
REWORDED = [
    (
        r"no released result is more than (exp\(\S+\)) times as likely under one as under the "
        "other",
        r"any statement about the released results is at most \1 times as probable under one as "
        "under the other",
    ),
    (r", but for a chance of at most (\S+?)(?=[.,]? |\.$|$)", r", plus \1"),
    (r"(how many parties there are, )and", r"\1what they are called, and"),
    ("so was whatever prepared the columns", "so was the preparation of the columns"),
    ("in the data and what it holds, in counts_", "in the data and what it contains, in counts_"),
    ("a reader of the whole of values_", "a reader of all of values_"),
    (
        "what a row holds, in the values of other rows",
        "what a row contains, in the values of other rows",
    ),
    (r"that are asked for \((\d+) at most\)", r"that are queried (at most \1)"),
    ("what every row holds, in the vector", "what each row contains, in the vector"),
    ("rows from whoever holds the fitted object", "rows from anyone who has the fitted object"),
    (r"(in the vector of all values\b.*)\beverybody\b", r"\1everyone"),
    (
        r"(a trusted curator) holds the clear data and(?= releases)",
        r"\1 sees the clear data, or what is computed from them, and",
    ),
    (r"(a trusted curator (?:holds|sees) the) clear data", r"\1 raw data"),
    ("also when the others pool", "even when the others pool"),
    (
        "(each party adds the noise before anything leaves it) and trusts nobody",
        r"no one; \1",
    ),
    (
        "the noise came from a seed (.*), so that it can be repeated and taken off",
        r"the noise was drawn from a seed \1, so it can be reproduced and subtracted",
    ),
    (
        r"From a ([^']*)'s own releases nobody can tell that it was replaced with an area",
        r"A detector that uses only a \1's own releases to tell whether that \1 was replaced "
        "cannot have an area",
    ),
    ("that holds each row at rate", "that holds each row with probability"),
    (r"of them change, by (\d+)", r"of them change, each by at most \1"),
    (
        r"one change moves their sum of absolute values by at most",
        r"the absolute changes of all counts add up to at most",
    ),
    ("numbers that leave with it are rounded", "numbers released with it are rounded"),
]

TOLERANCE, TOLERANCE_FLOAT32 = 1e-12, 1e-6

# Set before Python starts: one thread unless a case needs more, and sets in one order.
ENVIRONMENT = dict(
    OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", PYTHONHASHSEED="0"
)


def make(function, *args, **params):
    """Call a class or function, by the names of parameters that this commit has."""
    for name, value in params.items():
        older = RENAMED.get((function.__name__, name), {})
        if isinstance(value, str) and value in older and not _knows(function, name, value):
            params[name] = older[value]
    return function(*args, **params)


def _knows(function, name, value):
    if isclass(function):
        constraints = function._parameter_constraints[name]
        return any(value in getattr(part, "options", ()) for part in constraints)
    return signature(function).parameters[name].default == value


# What is recorded of a result ---------------------------------------------------------------------


class Record:
    """Numbers and words by 'case/field'."""

    def __init__(self, pattern="", verbose=False):
        self.pattern, self.verbose = re.compile(pattern), verbose
        self.arrays, self.words, self.float32, self.seconds = {}, {}, [], {}

    def add(self, case, function, *args, float32=False, **params):
        """Run a case, if its name matches, and record what it returns."""
        if not self.pattern.search(case):
            return
        if case in self.seconds:
            raise ValueError(f"There are two cases of the name {case!r}.")
        start = process_time()
        if float32:
            self.float32.append(case)
        self.put(case, attempt(function, *args, **params))
        self.seconds[case] = process_time() - start
        if self.verbose:
            print(f"{self.seconds[case]:7.2f} s  {case}", flush=True)

    def put(self, key, value):
        """Record a value, part by part."""
        from skvalue.privacy import PrivacyReport, event_to_dict

        if isinstance(value, (np.ndarray, Number, np.generic)):
            array = np.asarray(value)
            if array.dtype.kind in "biuf":
                self.arrays[key] = array
            else:
                self.words[key] = json.dumps(array.tolist(), default=str)
        elif isinstance(value, str) or value is None:
            self.words[key] = str(value)
        elif isinstance(value, PrivacyReport):
            self.words[f"{key}/facts"] = json.dumps(value.to_dict(), default=str)
            self.words[f"{key}/text"] = str(value)
        elif isinstance(value, dict):  # a Bunch, too
            for name, part in value.items():
                self.put(f"{key}/{name}", part)
        elif isinstance(value, (list, tuple)):
            for number, part in enumerate(value):
                self.put(f"{key}/{number}", part)
        elif _is_ours(value, "Event"):
            self.words[f"{key}/event"] = json.dumps(event_to_dict(value), sort_keys=True)
        elif _is_ours(value, "Ledger"):
            for charge in value.charges:
                self.put(f"{key}/charge{charge.number}", charge.event)
                self.put(f"{key}/charge{charge.number}/label", charge.label)
        elif dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                self.put(f"{key}/{field.name}", getattr(value, field.name))
        elif hasattr(value, "toarray"):
            self.put(key, value.toarray())
        elif hasattr(value, "to_numpy"):
            self.put(key, value.to_numpy())
        elif _is_ours(value):
            for name in sorted(_fitted_names(value)):
                try:
                    part = getattr(value, name)
                except AttributeError:
                    continue
                self.put(f"{key}/{name}", part)

    def save(self, path):
        words = np.array(json.dumps(self.words))
        np.savez_compressed(
            path, **self.arrays, **{"words/": words, "float32/": np.array(self.float32, dtype=str)}
        )


def _is_ours(value, ending=""):
    cls = type(value)
    return cls.__module__.split(".")[0] == "skvalue" and cls.__name__.endswith(ending)


def _fitted_names(estimator):
    names = {*getattr(estimator, "__dict__", ()), *dir(type(estimator))}
    return {name for name in names if name.endswith("_") and not name.startswith("_")}


def attempt(function, *args, **params):
    """What a call returns, or the error that it raises."""
    try:
        return function(*args, **params)
    except Exception as error:
        name = type(error).__name__
        return f"error {name}: {error}"


# The data -----------------------------------------------------------------------------------------


def _classes(n=120, n_val=30, d=6, n_classes=3, seed=0, decimals=None, dtype=np.float64):
    """Rows, labels, a validation set, and rows to join; rounding makes ties."""
    from sklearn.datasets import make_classification

    X, y = make_classification(
        n + n_val + 7,
        d,
        n_informative=d - 2,
        n_redundant=1,
        n_classes=n_classes,
        n_clusters_per_class=1,
        flip_y=0.1,
        random_state=seed,
    )
    X = (X if decimals is None else X.round(decimals)).astype(dtype)
    return _cut(X, np.array(["a", "c", "b", "e", "d"])[y], n, n_val)


def _targets(n=90, n_val=30):
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    return _cut(10 * X[: n + n_val + 7], y[: n + n_val + 7] / 100, n, n_val)


def _cut(X, y, n, n_val):
    rows, val, new = slice(n), slice(n, n + n_val), slice(n + n_val, None)
    return dict(X=X[rows], y=y[rows], X_val=X[val], y_val=y[val]), X[new], y[new]


def _without_validation(data):
    return dict(X=data["X"], y=data["y"])


def _group_names(n, n_groups=8):
    return np.array([f"g{i * 7 % n_groups}" for i in range(n)])


def _ledger():
    from skvalue.privacy import Ledger

    return Ledger(None, "golden", epsilon=20.0, delta=1e-4)


def _torch():
    import torch

    return torch


def _net(d, outputs, dtype="float64"):
    torch = _torch()
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(d, 5), torch.nn.Tanh(), torch.nn.Linear(5, outputs)
    ).to(getattr(torch, dtype))


# Neighbours ---------------------------------------------------------------------------------------


def _neighbours(cls, data, X_new, y_new, *, fit=None, updates=False, config=None, **params):
    """A fit of a neighbour method, its methods, and rows that come and go."""
    from sklearn import config_context

    with config_context(**(config or {})):
        valuer = cls(**params)
        valuer.fit(**data, **(fit or {}))
        whole = dict(
            fit=valuer,
            validation_error=attempt(lambda: valuer.validation_error_),
            harmful=attempt(valuer.harmful, fdr=0.3),
            first=attempt(valuer.contributions, 0),
            last=attempt(valuer.contributions, -1),
            values_for=attempt(valuer.values_for, 2),
            seen=attempt(valuer.transform, data["X"][:9]),
            new=attempt(valuer.transform, X_new),
            labelled=attempt(valuer.score_samples, X_new, y_new),
            unlabelled=attempt(valuer.score_samples, X_new),
            names=attempt(valuer.get_feature_names_out),
        )
        whole = _frozen(whole)
        if updates:
            groups = {"groups": _group_names(X_new.shape[0])} if "groups" in (fit or {}) else {}
            added = _frozen(attempt(valuer.add_rows, X_new, y_new, **groups))
            removed = _frozen(attempt(valuer.remove_rows, [0, 3, data["X"].shape[0] - 1]))
            n = data["X"].shape[0] + X_new.shape[0] - 3
            masked = _frozen(attempt(valuer.remove_rows, np.arange(n) % 50 == 7))
            joined = _frozen(attempt(valuer.add_validation, X_new[::-1], y_new[::-1]))
            last = dict(
                new=attempt(valuer.transform, X_new * 1.1),
                validation_error=attempt(lambda: valuer.validation_error_),
            )
            whole.update(added=added, removed=removed, masked=masked, joined=joined, last=last)
        return whole


def _frozen(value):
    """The facts of now: estimators change when rows come and go."""
    record = Record()
    record.put("x", value)
    return {key.removeprefix("x/"): part for key, part in (record.arrays | record.words).items()}


def neighbours(record):
    from scipy import sparse
    from sklearn.preprocessing import StandardScaler

    from skvalue import KNNShapleyValuer, TKNNShapleyValuer

    data = _classes()
    tied = _classes(decimals=0, seed=1)
    two = _classes(n_classes=2, seed=2)
    single = _classes(seed=3, dtype=np.float32)
    large = _classes(n=1500, n_val=200, d=8, seed=4)
    large32 = _classes(n=1500, n_val=200, d=8, seed=4, dtype=np.float32)
    targets = _targets()
    balls = {"cosine": 0.4, "euclidean": 2.5, "manhattan": 5.0, "l2": 2.5, "chebyshev": 1.5}
    small = {"working_memory": 0.05}
    groups = {"groups": _group_names(120)}
    weights = {"sample_weight_val": np.linspace(0.2, 2, 30)}
    lone = (_without_validation(data[0]), *data[1:])

    def knn(name, problem, **params):
        record.add(f"knn {name}", _neighbours, KNNShapleyValuer, *problem, **params)

    def tknn(name, problem, radius=2.5, metric="euclidean", **params):
        params = {"radius": radius, "metric": metric, **params}
        record.add(f"tknn {name}", _neighbours, TKNNShapleyValuer, *problem, **params)

    for name, problem in dict(classes=data, ties=tied, two=two, single=single).items():
        knn(name, problem, updates=True)
        tknn(name, problem, updates=True)
        tknn(f"{name}, cosine", problem, 0.4, "cosine", updates=True)
        knn(f"{name}, original", problem, utility="original", n_neighbors=3)
        knn(f"{name}, max_rank", problem, max_rank=10, updates=True)
    for metric, radius in balls.items():
        knn(f"metric {metric}", data, metric=metric)
        tknn(f"metric {metric}", data, radius, metric)
        knn(f"metric {metric}, ties", tied, metric=metric)
        tknn(f"metric {metric}, ties", tied, radius, metric)
    for cv in ("leave-one-out", 4):
        problem = (_without_validation(data[0]), *data[1:])
        knn(f"cv {cv}", problem, cv=cv, updates=True)
        tknn(f"cv {cv}", problem, cv=cv, updates=True)
        tied_alone = (_without_validation(tied[0]), *tied[1:])
        knn(f"cv {cv}, ties", tied_alone, cv=cv, max_rank=8)
        tknn(f"cv {cv}, ties, cosine", tied_alone, 0.4, "cosine", cv=cv)
    knn("groups", data, fit=groups, updates=True)
    tknn("groups", data, fit=groups, updates=True)
    knn("weights", data, fit=weights)
    tknn("weights", data, fit=weights)
    knn("threads", large, n_jobs=2)
    tknn("threads", large, n_jobs=2)
    knn("small tiles", large, config=small, updates=True)
    tknn("small tiles", large, config=small, updates=True)
    knn("small tiles, float32", large32, config=small)
    tknn("small tiles, float32", large32, config=small)
    knn("small tiles, leave-one-out", (_without_validation(large[0]), *large[1:]), config=small)
    tknn("small tiles, leave-one-out", (_without_validation(large[0]), *large[1:]), config=small)
    knn("embedding", data, embedding=StandardScaler())
    tknn("embedding", data, embedding=StandardScaler())
    knn("K above n", (_part(data[0], 8), *data[1:]), n_neighbors=9)
    tknn("empty balls", data, 1e-3)
    tknn("all in a ball", data, 100.0)
    tknn("radius auto", data, "auto", "cosine")
    tknn("radius auto, euclidean", data, "auto")
    for semivalue in ("banzhaf", "leave-one-out", (4, 1), (1, 16)):
        tknn(f"semivalue {semivalue}", data, semivalue=semivalue, updates=True)
        tknn(f"semivalue {semivalue}, cv", lone, semivalue=semivalue)

    lone_targets = (_without_validation(targets[0]), *targets[1:])
    for utility in ("soft", "original"):
        knn(f"regression {utility}", targets, utility=utility, updates=True)
        knn(f"regression {utility}, leave-one-out", lone_targets, utility=utility, updates=True)
        knn(f"regression {utility}, cv", lone_targets, utility=utility, cv=3)
    knn("regression groups", targets, fit={"groups": _group_names(90)})
    knn("regression weights, manhattan", targets, fit=weights, metric="manhattan")

    for name, form in dict(sparse=sparse.csr_array, csc=sparse.csc_array).items():
        thin = _thin(form)
        knn(name, thin, metric="cosine", updates=True)
        tknn(name, thin, 0.8, "cosine", updates=True)
        knn(f"{name}, euclidean", thin)
        tknn(f"{name}, euclidean", thin)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.npy")
        middle = _classes(n=500, n_val=40, d=8, seed=4)
        np.save(path, middle[0]["X"])
        mapped = {**middle[0], "X": np.load(path, mmap_mode="r")}
        for name, rows in dict(memmap=mapped, dask=_in_dask(middle[0])).items():
            options = {"config": {"working_memory": 0.5}}
            problem = (rows, *middle[1:])
            knn(name, problem, **options)
            tknn(name, problem, **options)
            tknn(f"{name}, cosine", problem, 0.4, "cosine", **options)
            knn(f"{name}, max_rank", problem, max_rank=20, **options)

    for engine in ("numba", "torch", "faiss"):
        for name, problem in dict(float64=large, float32=large32, ties=tied).items():
            if engine == "numba" and name == "float64":
                continue
            options = dict(engine=engine, device="cpu", float32=name == "float32")
            knn(f"{engine} {name}", problem, **options)
            knn(
                f"{engine} {name}, cosine, max_rank",
                problem,
                metric="cosine",
                max_rank=9,
                **options,
            )
            tknn(f"{engine} {name}", problem, **options)
            tknn(f"{engine} {name}, cosine", problem, 0.4, "cosine", **options)
        knn(f"{engine} regression", targets, engine=engine, device="cpu")
        knn(f"{engine} leave-one-out", lone, engine=engine, device="cpu")
        tknn(f"{engine} leave-one-out", lone, engine=engine, device="cpu", semivalue="banzhaf")
    knn("faiss-ivf", large32, engine="faiss-ivf", device="cpu", max_rank=20, float32=True)

    # Refusals.
    knn("refused max_rank of regression", targets, max_rank=9)
    knn("refused max_rank below K", data, max_rank=3)
    knn("refused metric of faiss", data, engine="faiss", metric="manhattan")
    knn("refused engine of sparse", _thin(sparse.csr_array), engine="torch")
    knn(
        "refused nan",
        ({**data[0], "X": np.where(data[0]["X"] > 2, np.nan, data[0]["X"])}, *data[1:]),
    )
    tknn("refused targets", targets)
    tknn("refused radius", data, -1.0)
    tknn("refused cv", lone, cv="leave-two-out")

    private_neighbours(record, data, two, tied, tknn)


def private_neighbours(record, data, two, tied, tknn):
    from skvalue import TKNNShapleyValuer

    def private(name, problem, ledger=True, **params):
        def fitted():
            book = _ledger() if ledger else None
            params_ = {"noise_random_state": 3, "epsilon": 1.0, "ledger": book, **params}
            result = _neighbours(TKNNShapleyValuer, *problem, **params_)
            return dict(result=result, ledger=book)

        record.add(f"tknn private {name}", fitted)

    ball = dict(radius=2.5, metric="euclidean")
    cosine = dict(radius=0.4, metric="cosine")
    weights = {"sample_weight_val": np.linspace(0.2, 2, 30)}
    for relation in ("null", "add_remove", "replace"):
        private(f"{relation}", data, relation=relation, **ball)
        private(f"{relation}, cosine", two, relation=relation, **cosine)
        private(f"{relation}, capped", data, relation=relation, max_contributions=3, **ball)
        private(f"{relation}, sampled", data, relation=relation, sampling_rate=0.3, **ball)
    private("raw", data, denoise=False, **ball)
    private("raw, ties", tied, denoise=False, **cosine)
    private("raw, capped, cosine", two, denoise=False, max_contributions=2, **cosine)
    private(
        "raw, capped and sampled",
        data,
        denoise=False,
        max_contributions=2,
        sampling_rate=0.5,
        **ball,
    )
    private("small epsilon", data, epsilon=0.05, **ball)
    private("large epsilon", data, epsilon=15.0, **ball)
    private("weights", data, fit=weights, **ball)
    private("groups", data, fit={"groups": _group_names(120)}, **ball)
    private("updates", data, updates=True, **ball)
    private("banzhaf", data, semivalue="banzhaf", **ball)
    private("banzhaf, raw", data, semivalue="banzhaf", denoise=False, **ball)
    private("beta", two, semivalue=(4, 1), **ball)
    private("refused torch", data, engine="torch", device="cpu", **ball)
    private("manhattan", data, radius=5.0, metric="manhattan")
    private("reader", data, reader="curator", ledger=False, **ball)
    private(
        "small tiles",
        _classes(n=1500, n_val=200, d=8, seed=4),
        config={"working_memory": 0.05},
        **ball,
    )
    private("refused without validation", (_without_validation(data[0]), *data[1:]), **ball)
    private("refused radius auto of targets", _targets(), radius="auto", metric="euclidean")


def _part(data, n):
    return {**data, "X": data["X"][:n], "y": data["y"][:n]}


def _thin(form):
    rng = np.random.default_rng(5)
    X = rng.random((137, 40)) * (rng.random((137, 40)) < 0.15)
    data, X_new, y_new = _cut(X, np.array(["a", "b", "c"])[rng.integers(0, 3, 137)], 100, 30)
    return {**data, "X": form(data["X"]), "X_val": form(data["X_val"])}, form(X_new), y_new


def _in_dask(data):
    import dask.array as da

    return {**data, "X": da.from_array(data["X"], chunks=(200, 8))}


def _fitted_transform(cls, data, **params):
    valuer = cls(**params)
    return dict(values=valuer.fit_transform(**data), names=valuer.get_feature_names_out())


def formulas(record):
    """What the methods are made of, and the free functions of the other rooms."""
    from skvalue import KNNShapleyValuer, TKNNShapleyValuer
    from skvalue.valuers.knn_shapley import class_game, max_rank_bound, target_game
    from skvalue.valuers.tknn_shapley import neighbour_values, public_baseline, suggest_radius

    (data, X_new, _), two = _classes(), _classes(n_classes=2, seed=2)[0]
    for utility in ("soft", "original"):
        for n in (3, 40):
            record.add(f"class_game {utility}, {n}", _slots, class_game, n, 5, 3, utility)
            record.add(f"target_game {utility}, {n}", _slots, target_game, n, 5, utility)
    record.add("max_rank_bound", lambda: [max_rank_bound(50, r) for r in (5, 10, 50)])
    same, other = np.meshgrid(np.arange(6), np.arange(9))
    for semivalue in ("shapley", "banzhaf", "leave-one-out", (16, 1), (1, 4)):
        record.add(f"neighbour_values {semivalue}", neighbour_values, same, other, 3, semivalue)
    for metric in ("cosine", "euclidean", "manhattan"):
        record.add(f"suggest_radius {metric}", suggest_radius, data["X_val"], data["y_val"], metric)
        record.add(f"public_baseline {metric}", public_baseline, **data, radius=1.0, metric=metric)
    record.add(
        "public_baseline weights",
        public_baseline,
        **data,
        radius=2.0,
        metric="euclidean",
        sample_weight_val=np.linspace(0.1, 1, 30),
    )
    record.add("fit_transform knn", _fitted_transform, KNNShapleyValuer, data)
    record.add("fit_transform tknn", _fitted_transform, TKNNShapleyValuer, data)
    record.add(
        "fit_transform refused",
        _fitted_transform,
        TKNNShapleyValuer,
        data,
        epsilon=1.0,
        noise_random_state=0,
    )
    record.add(
        "fit_transform curator",
        _fitted_transform,
        TKNNShapleyValuer,
        data,
        epsilon=1.0,
        noise_random_state=0,
        reader="curator",
    )
    record.add("frame", _frame, two, X_new)
    semivalues(record)
    samplers(record)
    games(record)
    rewards(record)


def _slots(function, *args):
    """The tables of a game, whatever holds them."""
    made = function(*args)
    if isinstance(made, tuple) and hasattr(made, "_asdict"):
        return tuple(made)
    return made


def _frame(data, X_new):
    import pandas as pd

    from skvalue import KNNShapleyValuer

    names = [f"column{i}" for i in range(data["X"].shape[1])]
    frames = {key: pd.DataFrame(data[key], columns=names) for key in ("X", "X_val")}
    valuer = KNNShapleyValuer().set_output(transform="pandas").fit(**{**data, **frames})
    out = valuer.transform(pd.DataFrame(X_new, columns=names))
    wrong = attempt(valuer.transform, pd.DataFrame(X_new, columns=names[::-1]))
    return dict(fit=valuer, out=out, columns=list(map(str, out.columns)), wrong=wrong)


def semivalues(record):
    from skvalue import semivalues as module

    kinds = ("shapley", "banzhaf", "leave-one-out", (4, 1), (1, 16), (0.5, 0.5))
    for kind in kinds:
        for name in ("size_weights", "log_size_weights", "coalition_weights", "absence_moments"):
            record.add(f"{name} {kind}", getattr(module, name), kind, 12)
        utilities = np.random.default_rng(0).normal(size=2**6)
        record.add(f"tabulated {kind}", module.tabulated_semivalue, utilities, kind)
        record.add(
            f"enumerated {kind}",
            module.enumerate_semivalue,
            lambda players: sum(i + 1.0 for i in players) ** 0.5,
            7,
            kind,
        )
    record.add("size_weights refused", module.size_weights, (-1, 2), 12)
    record.add("size_weights callable", module.size_weights, lambda n: np.full(n, 1 / n), 12)


def samplers(record):
    from skvalue import samplers as module
    from skvalue.semivalues import size_weights

    def rng():
        return np.random.default_rng(11)

    for kind in module.ORDERS:
        record.add(f"draw_orders {kind}", lambda kind=kind: module.draw_orders(rng(), 9, kind))
    record.add("all_subsets", module.all_subsets, 7, 3)
    record.add("subset_ranks", lambda: module.subset_ranks(module.all_subsets(7, 3)))
    record.add("circle_blocks", lambda: module.circle_blocks(rng().permutation(10), 4, 5))
    record.add("distinct_subsets", lambda: module.distinct_subsets(rng(), 12, 4, 20.5))
    record.add("partitions", lambda: module.partitions(rng(), 12, 4, 20))
    record.add("systematic_counts", lambda: module.systematic_counts(rng(), np.linspace(0.1, 3, 9)))
    for allocation in ("bound", "neyman"):
        record.add(
            f"layer_counts {allocation}",
            make,
            module.layer_counts,
            1 / np.arange(1, 20.0),
            0.05,
            0.9,
            allocation=allocation,
        )
    record.add("neyman_allocation", module.neyman_allocation, np.array([0.5, 0.1, 2.0, 0.0]), 100)
    for kind in ("shapley", "banzhaf", (4, 1)):
        for stratified in (True, False):
            strata = module.SizeStrata.of(size_weights(kind, 10), stratified)
            record.add(f"strata {kind}, {stratified}", lambda strata=strata: vars(strata))
            labels = np.arange(40) % strata.n_strata
            record.add(
                f"draw_subsets {kind}, {stratified}", partial(_subsets, module, strata, labels)
            )
    orders = module.draw_orders(rng(), 8, "antithetic")
    record.add(
        "prefix_masks", lambda: module.prefix_masks(np.argsort(orders, axis=1), np.array([3, 7]))
    )
    record.add(
        "prefix_marginals",
        lambda: module.prefix_marginals(
            orders, rng().normal(size=(len(orders), 9)), np.full(8, 1 / 8)
        ),
    )


def _subsets(module, strata, labels):
    return module.draw_subsets(np.random.default_rng(2), strata, labels)


def _estimators():
    from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    return {
        "logistic": (LogisticRegression(), "classes"),
        "logistic, two": (LogisticRegression(C=0.3), "two"),
        "logistic, balanced": (LogisticRegression(class_weight="balanced"), "two"),
        "bayes": (GaussianNB(), "classes"),
        "neighbours": (KNeighborsClassifier(3), "classes"),
        "centroid": (NearestCentroid(), "classes"),
        "tree": (DecisionTreeClassifier(max_depth=3, random_state=0), "classes"),
        "ridge": (Ridge(0.5), "targets"),
        "linear": (LinearRegression(), "targets"),
        "tree regressor": (DecisionTreeRegressor(max_depth=3, random_state=0), "targets"),
    }


def _problems(n=24):
    classes, two = _classes(n=n, n_val=40), _classes(n=n, n_val=40, n_classes=2, seed=2)
    return {"classes": classes[0], "two": two[0], "targets": _targets(n=n, n_val=40)[0]}


def games(record):
    from sklearn.linear_model import LogisticRegression

    from skvalue import games as module

    rng = np.random.default_rng(4)
    problems = _problems(30)
    masks = rng.random((80, 30)) < rng.random((80, 1))
    masks[0], masks[1] = False, True

    def model_game(estimator, data, masks=masks, **params):
        game = module.ModelGame(estimator, **data, **params)
        return dict(
            utilities=game.utility(masks),
            empty=game.empty_utility,
            solver=game.solver,
            n_evaluations=game.n_evaluations,
            n_failed=game.n_failed,
            n_players=game.n_players,
        )

    nested = np.tril(np.ones((30, 30), dtype=bool))
    for name, (estimator, target) in _estimators().items():
        data = problems[target]
        record.add(f"game {name}", model_game, estimator, data)
        record.add(f"game {name}, nested", model_game, estimator, data, nested)
        record.add(f"game {name}, loop", model_game, estimator, data, masks[:15], batch="never")
        record.add(
            f"game {name}, weights",
            model_game,
            estimator,
            data,
            sample_weight_val=np.linspace(0.1, 2, 40),
        )
        record.add(
            f"game {name}, row weights",
            model_game,
            estimator,
            data,
            masks[:20],
            sample_weight=np.linspace(0, 2, 30),
        )
        record.add(
            f"game {name}, groups",
            model_game,
            estimator,
            data,
            masks[:, :8],
            groups=_group_names(30),
        )
    for name in ("logistic", "logistic, two", "ridge"):
        estimator, target = _estimators()[name]
        record.add(
            f"game {name}, torch",
            model_game,
            estimator,
            problems[target],
            batch="torch",
            device="cpu",
        )
    for scoring in ("neg_log_loss", "roc_auc", "balanced_accuracy", "f1_macro"):
        record.add(
            f"game scoring {scoring}",
            model_game,
            LogisticRegression(),
            _problems(30)["two"],
            masks[:30],
            scoring=scoring,
            empty_utility=None if scoring != "f1_macro" else 0.25,
        )
    record.add(
        "game scoring mse",
        model_game,
        _estimators()["ridge"][0],
        problems["targets"],
        scoring="neg_mean_squared_error",
        empty_utility=-3.0,
    )
    record.add(
        "game scoring refused",
        model_game,
        LogisticRegression(),
        problems["two"],
        scoring="f1_macro",
    )

    def stable(masks=masks, **params):
        codes = np.unique(problems["two"]["y"], return_inverse=True)[1]
        codes_val = np.unique(problems["two"]["y_val"], return_inverse=True)[1]
        game = module.StableLogisticGame(
            problems["two"]["X"], codes, problems["two"]["X_val"], codes_val, **params
        )
        return dict(
            utilities=game.utility(masks),
            empty=game.empty_utility,
            bounds=[game.replace_bound(size) for size in (1, 5, 20)],
        )

    record.add("stable game", stable)
    record.add("stable game, no intercept", stable, l2=0.1, max_norm=2.0, fit_intercept=False)
    record.add("stable game, weights", stable, sample_weight_val=np.linspace(0.1, 2, 40))
    record.add("stable game, groups", stable, masks[:, :8], groups=np.arange(30) % 8)
    record.add("stability", lambda: [module.stability(0.5, 2.0), module.stability(1, 1, False)])
    record.add("clip_rows", lambda: module.clip_rows(problems["two"]["X"], 1.5))
    record.add("airport", lambda: module.airport_game([1, 2, 4]).utility(masks[:, :3]))
    record.add("gloves", lambda: module.gloves_game(2, 3).utility(masks[:, :5]))
    record.add("voting", lambda: module.voting_game([4, 2, 1], 5).utility(masks[:, :3]))


def rewards(record):
    from skvalue import rewards as module

    values, alone = np.array([0.5, -0.1, 1.2, 0.3]), np.array([0.3, 0.1, 0.9, 0.2])
    record.add("rho_targets", module.rho_targets, values, 2.0, 0.4)
    record.add("largest_rho", module.largest_rho, np.abs(values), alone, 2.0)
    record.add("shares", module.shares, values, 10.0)
    record.add("shares in units", module.shares, values, 10.0, 0.25)
    record.add("shares refused", module.shares, -values, -1.0)


# Retraining ---------------------------------------------------------------------------------------


def _retrained(valuer, data, *, stop=None, **fit):
    """A fit by retraining, stopped early in some cases, and its intervals."""
    from watch import Watch

    if stop is not None:
        valuer.set_callbacks(Watch(stop_at=stop))
    valuer.fit(**data, **fit)
    return dict(
        fit=valuer,
        values_for=attempt(valuer.values_for, 1),
        interval=attempt(valuer.confidence_interval, 0.9),
        bernstein=attempt(valuer.confidence_interval, 0.9, "bernstein", (0, 1)),
        signs=attempt(valuer.sign_decided, 0.9),
    )


def retraining(record):
    import skvalue

    problems = _problems()
    seeded = dict(max_evaluations=400, random_state=0)
    for name, (estimator, target) in _estimators().items():
        data = problems[target]
        few = dict(seeded, max_evaluations=60) if "tree" in name else seeded
        for cls in ("DataShapleyValuer", "DataBanzhafValuer"):
            record.add(f"{cls} {name}", _semivalue_fit, cls, estimator, data, **few)
        record.add(
            f"LeaveOneOutValuer {name}", _semivalue_fit, "LeaveOneOutValuer", estimator, data
        )
    data, two, targets = problems["classes"], problems["two"], problems["targets"]
    logistic, ridge = _estimators()["logistic"][0], _estimators()["ridge"][0]
    for alpha, beta in ((16, 1), (1, 4)):
        record.add(
            f"BetaShapleyValuer {alpha}, {beta}",
            _semivalue_fit,
            "BetaShapleyValuer",
            logistic,
            data,
            alpha=alpha,
            beta=beta,
            **seeded,
        )
    orders = ("permutation", "antithetic", "latin", "orthogonal")
    for sampler in ("stratified", "subsets", *orders):
        for semivalue in ("shapley", "banzhaf", (4, 1), "leave-one-out"):
            record.add(
                f"sampler {sampler}, {semivalue}",
                _semivalue_fit,
                "SemivalueValuer",
                logistic,
                two,
                semivalue=semivalue,
                sampler=sampler,
                **seeded,
            )
    for sampler in orders:
        record.add(
            f"sampler {sampler}, truncated",
            _semivalue_fit,
            "DataShapleyValuer",
            ridge,
            targets,
            sampler=sampler,
            truncation=0.05,
            **seeded,
        )
    small = {key: part[:9] if key in ("X", "y") else part for key, part in two.items()}
    for semivalue in ("shapley", "banzhaf", (1, 4)):
        record.add(
            f"sampler exact, {semivalue}",
            _semivalue_fit,
            "SemivalueValuer",
            logistic,
            small,
            semivalue=semivalue,
            sampler="exact",
        )
    record.add(
        "semivalue auto, few rows",
        _semivalue_fit,
        "SemivalueValuer",
        ridge,
        {key: part[:9] if key in ("X", "y") else part for key, part in targets.items()},
        random_state=0,
    )
    record.add(
        "semivalue callable",
        _semivalue_fit,
        "SemivalueValuer",
        logistic,
        two,
        semivalue=lambda n: np.arange(1.0, n + 1) / np.arange(1, n + 1).sum(),
        **seeded,
    )
    common = ("SemivalueValuer", logistic)
    record.add("semivalue tol", _semivalue_fit, *common, two, tol=0.01, random_state=0)
    record.add(
        "semivalue sign_level",
        _semivalue_fit,
        *common,
        two,
        sign_level=0.8,
        tol=0.02,
        max_evaluations=3000,
        random_state=0,
    )
    record.add(
        "semivalue stable_bottom",
        _semivalue_fit,
        *common,
        two,
        stable_bottom=3,
        max_evaluations=3000,
        random_state=0,
    )
    for stop in (1, 2):
        record.add(
            f"semivalue stopped at {stop}",
            _semivalue_fit,
            *common,
            two,
            stop=stop,
            max_evaluations=4000,
            sampler="antithetic",
            random_state=0,
        )
    for sampler in ("stratified", "antithetic"):
        record.add(
            f"semivalue cv, {sampler}",
            _semivalue_fit,
            *common,
            _without_validation(two),
            cv=3,
            sampler=sampler,
            **seeded,
        )
        record.add(
            f"semivalue groups, {sampler}",
            _semivalue_fit,
            *common,
            two,
            sampler=sampler,
            fit=dict(groups=_group_names(24)),
            **seeded,
        )
        record.add(f"semivalue warm start, {sampler}", _warm_start, logistic, two, sampler)
        record.add(f"semivalue checkpoint, {sampler}", _checkpoint, logistic, two, sampler)
        record.add(f"semivalue merge, {sampler}", _merge, logistic, two, sampler)
    record.add(
        "semivalue weights",
        _semivalue_fit,
        *common,
        two,
        fit=dict(sample_weight=np.linspace(0.1, 2, 24), sample_weight_val=np.linspace(0.1, 2, 40)),
        **seeded,
    )
    record.add(
        "semivalue workers",
        _semivalue_fit,
        *common,
        two,
        n_jobs=2,
        batch="never",
        max_evaluations=60,
        random_state=0,
    )
    record.add(
        "semivalue torch", _semivalue_fit, *common, two, batch="torch", device="cpu", **seeded
    )
    record.add(
        "semivalue defaults",
        _semivalue_fit,
        "SemivalueValuer",
        None,
        two,
        scoring="neg_log_loss",
        **seeded,
    )
    record.add(
        "semivalue defaults, targets", _semivalue_fit, "SemivalueValuer", None, targets, **seeded
    )
    record.add("semivalue cost", _cost, logistic, two)
    record.add(
        "leave-one-out cv",
        _semivalue_fit,
        "LeaveOneOutValuer",
        logistic,
        _without_validation(two),
        cv=3,
    )
    unseen = {**two, "y_val": np.where(np.arange(40) == 3, "z", two["y_val"])}
    record.add("semivalue refused class", _semivalue_fit, *common, unseen, **seeded)
    record.add("semivalue refused sampler", _semivalue_fit, *common, two, sampler="dice")
    record.add(
        "semivalue refused truncation",
        _semivalue_fit,
        *common,
        two,
        truncation=0.1,
        sampler="subsets",
    )

    def out_of_bag(estimator, data, fit=None, **params):
        valuer = skvalue.DataOOBValuer(estimator, **{"n_estimators": 60, **params}, random_state=0)
        return valuer.fit(**data, **(fit or {}))

    lone, lone_targets = map(_without_validation, (data, targets))
    record.add("data-oob", out_of_bag, None, lone)
    record.add("data-oob regression", out_of_bag, None, lone_targets)
    record.add("data-oob logistic", out_of_bag, logistic, lone)
    record.add("data-oob groups", out_of_bag, None, lone, dict(groups=_group_names(24)))
    record.add(
        "data-oob weights", out_of_bag, None, lone, dict(sample_weight=np.linspace(0, 2, 24))
    )
    record.add("data-oob workers", out_of_bag, None, lone, n_jobs=2)
    record.add("data-oob few", out_of_bag, None, lone, n_estimators=2)
    record.add("data-oob refused", out_of_bag, None, lone, dict(sample_weight=np.zeros(24)))


def _semivalue_fit(cls, estimator, data, *, fit=None, stop=None, **params):
    import skvalue

    return _retrained(getattr(skvalue, cls)(estimator, **params), data, stop=stop, **(fit or {}))


def _some(estimator, sampler, count, seed=0, **params):
    from skvalue import SemivalueValuer

    return SemivalueValuer(
        estimator, sampler=sampler, max_evaluations=count, random_state=seed, **params
    )


def _warm_start(estimator, data, sampler):
    valuer = _some(estimator, sampler, 300, warm_start=True)
    first = _frozen(_retrained(valuer, data))
    return dict(first=first, then=_retrained(valuer.set_params(max_evaluations=900), data))


def _checkpoint(estimator, data, sampler):
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "fit.npz")
        first = _frozen(_retrained(_some(estimator, sampler, 300, checkpoint=path), data))
        then = _some(estimator, sampler, 900, checkpoint=path)
        other = {**data, "X": data["X"] + 1}
        refused = attempt(_some(estimator, sampler, 900, checkpoint=path).fit, **other)
        if isinstance(refused, str):
            refused = refused.replace(folder, "FOLDER")
        return dict(first=first, then=_frozen(_retrained(then, data)), other=_frozen(refused))


def _merge(estimator, data, sampler):
    first = _some(estimator, sampler, 300).fit(**data)
    second = _some(estimator, sampler, 300, seed=1).fit(**data)
    merged = first.merge(second)
    return dict(merged=merged, first=first, again=attempt(first.merge, first))


def _cost(estimator, data):
    cost = _some(estimator, "stratified", 500).estimate_cost(**data)
    return {name: cost[name] for name in ("n_evaluations", "n_players", "sampler", "solver")}


# Layers -------------------------------------------------------------------------------------------


def layered(record):
    from sklearn.linear_model import LogisticRegression

    from skvalue import LayeredShapleyValuer
    from skvalue.valuers.layered_shapley import suggest_bound

    problems = _problems()
    two, classes, targets = (problems[name] for name in ("two", "classes", "targets"))
    _, X_new, y_new = _classes(n=24, n_val=40, n_classes=2, seed=2)

    def fitted(data, fit=None, stop=None, new=True, **params):
        from watch import Watch

        valuer = make(LayeredShapleyValuer, random_state=0, **params)
        if stop is not None:
            valuer.set_callbacks(Watch(stop_at=stop))
        valuer.fit(**data, **(fit or {}))
        whole = dict(fit=_frozen(valuer), values_for=attempt(valuer.values_for, 1))
        if new:
            whole.update(
                seen=attempt(valuer.transform, data["X"][:3]),
                new=attempt(valuer.transform, X_new),
                labelled=attempt(valuer.score_samples, X_new, y_new),
                cores=attempt(_cores, valuer, X_new, y_new),
            )
        whole["group"] = attempt(valuer.value_of_group, [0, 4], 0.3, 0.1)
        return whole

    few = dict(max_evaluations=400)
    for design in ("blocks", "iid", "poisson"):
        for name, params in dict(
            l2=dict(l2=1.0), model=dict(estimator=LogisticRegression())
        ).items():
            record.add(f"layered {design}, {name}", fitted, two, design=design, **few, **params)
            record.add(
                f"layered {design}, {name}, layers",
                fitted,
                two,
                design=design,
                n_layers=3,
                tol=0.5,
                confidence=0.8,
                **params,
            )
            record.add(
                f"layered {design}, {name}, neyman",
                fitted,
                two,
                design=design,
                **few,
                allocation="neyman",
                **params,
            )
            record.add(
                f"layered {design}, {name}, bound",
                fitted,
                two,
                design=design,
                **few,
                allocation="bound",
                bound=0.5,
                **params,
            )
        record.add(
            f"layered {design}, cv",
            fitted,
            _without_validation(two),
            l2=1.0,
            cv=3,
            design=design,
            **few,
        )
        record.add(
            f"layered {design}, groups",
            fitted,
            two,
            dict(groups=_group_names(24)),
            l2=1.0,
            design=design,
            new=False,
            **few,
        )
    record.add("layered classes", fitted, classes, new=False, **few)
    record.add("layered targets", fitted, targets, new=False, **few)
    record.add(
        "layered log loss",
        fitted,
        two,
        estimator=LogisticRegression(),
        scoring="neg_log_loss",
        **few,
    )
    record.add(
        "layered weights",
        fitted,
        two,
        dict(sample_weight_val=np.linspace(0.1, 2, 40)),
        l2=0.5,
        fit_intercept=False,
        max_norm=2.0,
        **few,
    )
    record.add("layered workers", fitted, two, l2=1.0, n_jobs=2, **few)
    record.add("layered stopped", fitted, two, l2=1.0, stop=2, new=False, **few)
    record.add("layered refused design", fitted, two, design="dice")
    record.add("suggest_bound", suggest_bound, LogisticRegression(), **two, n_orders=4)

    def private(ask=(0, 1), fit=None, data=two, **params):
        book = _ledger()
        params = {"l2": 1.0, "n_layers": 2, "epsilon": 1.0, "tol": 0.5, **params}
        valuer = make(
            LayeredShapleyValuer, random_state=0, noise_random_state=5, ledger=book, **params
        )
        valuer.fit(**data, **(fit or {}))
        before = _frozen(valuer)
        asked = [attempt(valuer.values_for, i) for i in ask]
        return dict(
            before=before,
            asked=asked,
            after=_frozen(valuer),
            ledger=_frozen(book),
            new=attempt(valuer.transform, X_new),
            cores=attempt(valuer.core_sets),
            group=attempt(valuer.value_of_group, [0, 1]),
            refused=attempt(valuer.fit_transform, **data),
        )

    for release in ("query", "all", "publish"):
        for design in ("blocks", "iid"):
            record.add(
                f"layered private {release}, {design}", private, release=release, design=design
            )
    record.add("layered private queries", private, (3, 3, 5, 7, 9), max_queries=3)
    record.add(
        "layered private curator",
        private,
        release="all",
        reader="curator",
        fit_intercept=False,
        max_norm=2.0,
    )
    record.add(
        "layered private weights",
        private,
        release="publish",
        fit=dict(sample_weight_val=np.linspace(0.1, 2, 40)),
    )
    record.add("layered private refused groups", private, fit=dict(groups=_group_names(24)))
    record.add("layered private refused design", private, design="poisson")
    record.add("layered private refused without validation", private, data=_without_validation(two))
    record.add("layered private refused model", private, estimator=LogisticRegression())


def _cores(valuer, X_new, y_new):
    from skvalue.valuers.layered_shapley import CoreSet

    found = []
    for core in valuer.core_sets():
        codes = np.searchsorted(valuer.classes_, y_new)
        part = dict(
            n_coalitions=core.n_coalitions,
            scores=attempt(core.score_samples, X_new, y_new),
            joining=attempt(core.joining, X_new, codes),
            pruned=core.pruned().n_coalitions,
        )
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "core.npz"
            core.save(path)
            again = CoreSet.load(path, estimator=valuer.estimator)
            part["loaded"] = attempt(again.score_samples, X_new, y_new)
        found.append(part)
    return found


# Gradients ----------------------------------------------------------------------------------------


def gradients(record):
    from skvalue import FederatedSemivalueValuer, GradientSemivalueValuer
    from skvalue.semivalues import size_weights

    two = _classes(n=40, n_val=30, n_classes=2, seed=2)[0]
    classes, targets = _classes(n=40, n_val=30)[0], _targets(n=40, n_val=30)[0]
    groups, weights = dict(groups=_group_names(40)), dict(sample_weight_val=np.linspace(0.1, 2, 30))

    def fitted(cls, data, fit=None, book=None, **params):
        if book:
            params["ledger"] = _ledger()
        valuer = cls(**{"random_state": 0, **params})
        valuer.fit(**data, **(fit or {}))
        return dict(
            fit=valuer, ledger=params.get("ledger"), values_for=attempt(valuer.values_for, 1)
        )

    def gradient(name, data, fit=None, float32=False, **params):
        params = {"n_permutations": 12, **params}
        record.add(
            f"gradient {name}",
            fitted,
            GradientSemivalueValuer,
            data,
            fit,
            float32=float32,
            **params,
        )

    def federated(name, data, fit=groups, float32=False, **params):
        params = {"n_rounds": 10, "n_permutations": 4, **params}
        record.add(
            f"federated {name}",
            fitted,
            FederatedSemivalueValuer,
            data,
            fit,
            float32=float32,
            **params,
        )

    kinds = dict(two=two, classes=classes, targets=targets)
    for name, data in kinds.items():
        for method in (gradient, federated):
            method(name, data)
            method(f"{name}, unclipped", data, clip=None)
            method(f"{name}, clip auto", data, clip="median", learning_rate=0.3)
            method(f"{name}, components", data, clip="median", n_components=2)
            method(f"{name}, raw columns", data, standardize=False)
            method(f"{name}, weights", data, weights if method is gradient else groups | weights)
            method(f"{name}, private", data, epsilon=5.0, noise_random_state=1, book=True)
            method(
                f"{name}, private, components",
                data,
                epsilon=5.0,
                noise_random_state=1,
                book=True,
                clip="median",
                n_components=2,
            )
            method(
                f"{name}, private, groups, example",
                data,
                groups,
                unit="example",
                epsilon=5.0,
                noise_random_state=1,
                book=True,
            )
        gradient(f"{name}, groups", data, groups)
        gradient(f"{name}, cv", _without_validation(data), cv=3)
    for semivalue in ("banzhaf", "leave-one-out", (4, 1), lambda n: size_weights("shapley", n)):
        label = semivalue if not callable(semivalue) else "callable"
        gradient(f"semivalue {label}", two, semivalue=semivalue)
        federated(f"semivalue {label}", two, semivalue=semivalue)
        gradient(
            f"semivalue {label}, private",
            two,
            semivalue=semivalue,
            epsilon=3.0,
            noise_random_state=2,
            burn_in=0.5,
        )
    for method, noises in (
        (gradient, ("iid", "correlated", "optimal")),
        (federated, ("iid", "correlated", "recent")),
    ):
        for noise in noises:
            for trust in ("local", "server"):
                for unit in ("party", "example"):
                    method(
                        f"private {noise}, {trust}, {unit}",
                        two,
                        groups,
                        noise=noise,
                        trust=trust,
                        unit=unit,
                        epsilon=2.0,
                        noise_random_state=3,
                        book=True,
                    )
        method(
            "private shares",
            two,
            groups,
            noise=lambda t, k: 1 / t**0.5,
            epsilon=2.0,
            noise_random_state=3,
            book=True,
        )
        method(
            "noise multiplier", two, groups, noise_multiplier=0.3, noise_random_state=3, burn_in=0.0
        )
        method("accuracy", classes, groups, utility="accuracy")
        method(
            "accuracy, private",
            classes,
            groups,
            utility="accuracy",
            epsilon=2.0,
            noise_random_state=3,
        )
        method("softmax of two", two, groups, model="softmax")
        method("refused clip", two, groups, clip=None, epsilon=1.0)
        method("refused model", two, groups, model="forest")
        method("refused without validation", _without_validation(two), groups, epsilon=1.0)
        method("refused targets", targets, groups, utility="accuracy")
    gradient(
        "gradient_variance",
        two,
        noise="optimal",
        gradient_variance=0.01,
        epsilon=2.0,
        noise_random_state=3,
    )
    gradient("threads", two, n_jobs=2)
    gradient("threads, private", two, n_jobs=2, epsilon=2.0, noise_random_state=3)
    federated("sum", two, aggregate="sum")
    federated("cv", _without_validation(two), None, cv=3)
    federated("rows", two, None)
    federated("sampled coalitions", classes, dict(groups=np.arange(40) % 14))

    for dtype in ("float64", "float32"):
        single = dtype == "float32"
        data = {k: v.astype(dtype) if v.dtype.kind == "f" else v for k, v in classes.items()}
        data_y = {k: v.astype(dtype) if v.dtype.kind == "f" else v for k, v in targets.items()}
        for method in (gradient, federated):
            # Modules are made in the case: a fit must not be in the debt of one before it.
            method(
                f"module, {dtype}",
                data,
                groups,
                single,
                model=_net(6, 3, dtype),
                learning_rate=0.1,
                device="cpu",
            )
            method(
                f"module, targets, {dtype}",
                data_y,
                groups,
                single,
                model=_net(10, 1, dtype),
                learning_rate=0.1,
                device="cpu",
                clip=None,
            )
            method(
                f"module, components, {dtype}",
                data,
                groups,
                single,
                model=_net(6, 3, dtype),
                learning_rate=0.1,
                device="cpu",
                n_components=2,
                clip="median",
            )
            method(
                f"module, private, {dtype}",
                data,
                groups,
                single,
                model=_net(6, 3, dtype),
                learning_rate=0.1,
                device="cpu",
                epsilon=2.0,
                noise_random_state=3,
                unit="example",
                book=True,
            )

    def elsewhere(private=False, **params):
        def utility(thetas):
            return -((np.atleast_2d(thetas) - 1) ** 2).sum(axis=1)

        if private:
            params.update(epsilon=2.0, noise_random_state=4, ledger=_ledger())
        valuer = FederatedSemivalueValuer(n_rounds=5, random_state=0, **params)
        started = _frozen(valuer.start(utility, 6))
        rng, theta, steps = np.random.default_rng(0), np.zeros(3), []
        for _ in range(5):
            step = valuer.add_round(theta, rng.normal(size=(6, 3)) - theta)
            steps.append(step)
            theta = theta + step
        return dict(
            started=started,
            steps=steps,
            fit=valuer,
            ledger=params.get("ledger"),
            over=attempt(valuer.add_round, theta, np.zeros((6, 3))),
        )

    for noise in ("iid", "correlated", "recent"):
        record.add(f"federated elsewhere, {noise}", elsewhere, True, noise=noise)
    record.add("federated elsewhere", elsewhere)
    record.add(
        "federated elsewhere, banzhaf",
        elsewhere,
        semivalue="banzhaf",
        clip=None,
        aggregate="sum",
        learning_rate=0.5,
    )
    record.add(
        "federated release",
        lambda: [
            FederatedSemivalueValuer(n_rounds=5, epsilon=2.0, noise_random_state=1).release(
                np.arange(4.0)
            ),
            FederatedSemivalueValuer(n_rounds=5, clip=2.0).release(np.arange(4.0)),
        ],
    )


# Selection and inspection -------------------------------------------------------------------------


def selection(record):
    from sklearn.linear_model import LogisticRegression, Ridge

    import skvalue

    data, X_new, _ = _classes(n=80, n_val=30, n_classes=2, seed=2)
    targets, T_new, _ = _targets(n=80, n_val=30)
    lone = _without_validation(data)
    valuers = dict(
        knn=skvalue.KNNShapleyValuer(),
        tknn=skvalue.TKNNShapleyValuer(0.3),
        oob=skvalue.DataOOBValuer(n_estimators=30, random_state=0),
    )

    def filtered(valuer, data, fit=None, **params):
        chosen = skvalue.ValueFilter(valuer, **params)
        out = chosen.fit_resample(**data, **(fit or {}))
        return dict(
            out=out,
            fit=chosen,
            report=attempt(lambda: chosen.report_),
            select=attempt(chosen.select, np.arange(len(data["y"]))),
        )

    def model(cls, estimator, X_new, data, fit=None, **params):
        fitted = cls(estimator, **params).fit(**data, **(fit or {}))
        return dict(
            fit=fitted,
            predicted=fitted.predict(X_new),
            probabilities=attempt(lambda: fitted.predict_proba(X_new)),
            score=fitted.score(data["X"], data["y"]),
            select=attempt(fitted.select, data["y"]),
            report=attempt(lambda: fitted.report_),
        )

    for name, valuer in valuers.items():
        games = dict(validation=data, lone=lone) if name != "oob" else dict(lone=lone)
        for game, problem in games.items():
            for drop in (0.1, 5, "negative", "significant", "auto"):
                params = {"estimator": LogisticRegression()} if drop == "auto" else {}
                record.add(
                    f"filter {name}, {game}, {drop}",
                    filtered,
                    valuer,
                    problem,
                    drop=drop,
                    cv=3,
                    **params,
                )
            for mode in ("drop", "weight"):
                record.add(
                    f"classifier {name}, {game}, {mode}",
                    model,
                    skvalue.ValueFilteredClassifier,
                    LogisticRegression(),
                    X_new,
                    problem,
                    valuer=valuer,
                    drop=0.2,
                    mode=mode,
                )
    record.add("filter default", filtered, None, data)
    record.add("filter groups", filtered, valuers["knn"], data, dict(groups=_group_names(80)))
    record.add("filter refused", filtered, None, data, drop=1.5)
    record.add("filter regression", filtered, None, targets, drop=0.2)
    for mode in ("drop", "weight"):
        record.add(
            f"regressor {mode}",
            model,
            skvalue.ValueFilteredRegressor,
            Ridge(),
            T_new,
            targets,
            drop=0.2,
            mode=mode,
            fit=dict(sample_weight=np.linspace(1, 2, 80)),
        )
    record.add(
        "regressor auto",
        model,
        skvalue.ValueFilteredRegressor,
        Ridge(),
        T_new,
        targets,
        drop="auto",
        cv=3,
    )
    record.add(
        "classifier auto",
        model,
        skvalue.ValueFilteredClassifier,
        LogisticRegression(),
        X_new,
        data,
        drop="auto",
        cv=3,
    )
    inspection(record, data)


def inspection(record, data):
    from sklearn.linear_model import LogisticRegression

    from skvalue import GradientSemivalueValuer, KNNShapleyValuer
    from skvalue import inspection as module
    from skvalue.datasets import flip_labels, perturb_features

    y, wrong = flip_labels(data["y"], 0.2, random_state=0)
    record.add("flip_labels", lambda: (y, wrong))
    record.add("perturb_features", perturb_features, data["X"], 0.3, 2.0, 0)
    values = KNNShapleyValuer().fit(data["X"], y, X_val=data["X_val"], y_val=data["y_val"]).values_
    rows = (data["X"], y, values, data["X_val"], data["y_val"])
    for name in ("value_removal_curve", "value_addition_curve"):
        for first in ("lowest", "highest"):
            record.add(
                f"{name} {first}",
                getattr(module, name),
                LogisticRegression(),
                *rows,
                first=first,
                fractions=[0.1, 0.3, 0.6],
                n_repeats=2,
                random_state=0,
            )
    record.add("noisy_label_auc", module.noisy_label_auc, values, wrong)
    record.add("mean_adjusted_variance", module.mean_adjusted_variance, values, np.abs(values))
    owner = np.arange(80) // 10
    valuer = GradientSemivalueValuer(epsilon=1.0, n_permutations=5, noise_random_state=0)
    record.add(
        "detection_curve",
        module.detection_curve,
        valuer,
        data["X"],
        y,
        groups=owner,
        wrong=np.arange(8) < 3,
        X_val=data["X_val"],
        y_val=data["y_val"],
        epsilons=(1.0, 8.0),
        n_repeats=2,
        random_state=0,
    )

    def limit():
        fitted = GradientSemivalueValuer(epsilon=1.0, n_permutations=5, noise_random_state=0)
        report = fitted.fit(**data).privacy_
        return [module.detection_limit(report, k) for k in (1, 3)]

    record.add("detection_limit", limit)


# Parties ------------------------------------------------------------------------------------------


def collaborative(record):
    from skvalue import collaborative as module

    rng = np.random.default_rng(0)
    w = np.array([0.4, -0.3])
    rows = []
    for count in (60, 90, 120):
        X = rng.normal(size=(count, 2)) / 3
        rows.append((X, np.clip(X @ w + 0.2 * rng.normal(size=count), -1, 1)))
    counts = [rng.integers(0, 2, 50), rng.integers(0, 2, 80), rng.integers(0, 2, 20)]

    def released(cls, X, y=None, **params):
        book = _ledger() if params.get("epsilon") is not None else None
        party = make(cls, noise_random_state=3, ledger=book, **params).fit(X, y)
        return dict(
            party=party,
            json=party.release_.to_json(),
            ledger=book,
            noise_scale=party.release_.noise_scale,
            event=attempt(lambda: party.release_.event),
            sensitivity=attempt(lambda: party.release_.sensitivity),
        )

    for epsilon in (0.3, None):
        for name, params in dict(
            plain={},
            intercept=dict(fit_intercept=True),
            cross=dict(layout="cross"),
            moments=dict(moments_fraction=0.5),
            order=dict(renyi_order=8.0),
            prior=dict(prior="weights are small", x_bound=0.5),
        ).items():
            record.add(
                f"gram release {name}, {epsilon}",
                released,
                module.GramRelease,
                *rows[0],
                epsilon=None,
                renyi_epsilon=epsilon,
                **params,
            )
        record.add(
            f"logistic release {epsilon}",
            released,
            module.LogisticRelease,
            rows[0][0],
            rows[0][1] > 0,
            epsilon=None,
            renyi_epsilon=epsilon,
        )
        record.add(
            f"logistic release intercept, {epsilon}",
            released,
            module.LogisticRelease,
            rows[0][0],
            rows[0][1] > 0,
            epsilon=None,
            renyi_epsilon=epsilon,
            fit_intercept=True,
        )
        record.add(
            f"gaussian release {epsilon}",
            released,
            module.MeanRelease,
            rows[0][1],
            epsilon=None,
            renyi_epsilon=epsilon,
        )
        record.add(
            f"bernoulli release {epsilon}",
            released,
            module.MeanRelease,
            counts[0],
            epsilon=None,
            renyi_epsilon=epsilon,
            family="bernoulli",
        )
        record.add(
            f"poisson release {epsilon}",
            released,
            module.MeanRelease,
            counts[0] * 3,
            epsilon=None,
            renyi_epsilon=epsilon,
            family="poisson",
            upper=5.0,
            lower=0.0,
        )
    record.add(
        "gram release path",
        lambda: [
            part.to_json()
            for part in module.GramRelease(noise_random_state=0).path(
                *rows[0], renyi_epsilons=[0.1, 0.3, 1.0]
            )
        ],
    )
    record.add("gram release refused", released, module.GramRelease, *rows[0], epsilon=-1.0)

    def send(cls, parties, epsilons, **params):
        return {
            f"party{i}": cls(None, renyi_epsilon=epsilon, noise_random_state=i, **params)
            .fit(*part)
            .release_
            for i, (part, epsilon) in enumerate(zip(parties, epsilons))
        }

    epsilons = (0.5, 0.05, 0.2)

    def valued(model, releases, reward=True, draws=True, **params):
        scorer = module.BayesianSurpriseScorer(model, random_state=0, **params).fit(releases())
        whole = dict(fit=_frozen(scorer))
        if draws:
            whole["draws"] = attempt(lambda: scorer.sample(n_draws=40, random_state=0))
            whole["surprise"] = attempt(scorer.surprise, "all", 0.5)
        if reward:
            for control in ("temper", "noise", "scaled"):
                scheme = module.RhoShapleyReward(control=control, n_draws=40, random_state=0)
                whole[control] = attempt(lambda scheme=scheme: _rewards(scheme.fit(scorer)))
        return whole

    def one(family):
        params = dict(family=family, lower=0.0, upper=4.0)
        return lambda: send(module.MeanRelease, [(part,) for part in counts], epsilons, **params)

    def gram(**params):
        return lambda: send(module.GramRelease, rows, epsilons, **params)

    def logistic(**params):
        classes = [(X, y > 0) for X, y in rows]
        return lambda: send(module.LogisticRelease, classes, epsilons, **params)

    record.add("surprise gaussian", valued, module.GaussianMean(0.3), one("gaussian"))
    record.add(
        "surprise bernoulli", valued, module.BetaBernoulli(2, 3), one("bernoulli"), reward=False
    )
    record.add("surprise poisson", valued, module.GammaPoisson(2, 3), one("poisson"), reward=False)
    quick = dict(n_particles=150, min_ess=20)
    T = np.eye(2) / 9
    linear = partial(module.BayesianLinear, 0.105, x_covariance=T)
    record.add("surprise linear", valued, linear(), gram(), **quick)
    record.add(
        "surprise linear, clear", valued, linear(noise_aware=False), gram(), reward=False, **quick
    )
    record.add(
        "surprise linear, intercept",
        valued,
        module.BayesianLinear(0.105),
        gram(fit_intercept=True),
        reward=False,
        **quick,
    )
    for moments in ("hierarchical", "noisy"):
        record.add(
            f"surprise linear, {moments}",
            valued,
            module.BayesianLinear(0.105, moments=moments, moment_draws=8),
            gram(moments_fraction=0.4),
            reward=False,
            **quick,
        )
    record.add(
        "surprise gibbs",
        valued,
        linear(),
        gram(),
        method="gibbs",
        n_particles=40,
        reward=False,
        draws=False,
    )
    for approximation in ("normal", "quadratic"):
        record.add(
            f"surprise logistic, {approximation}",
            valued,
            module.BayesianLogistic(x_covariance=T, approximation=approximation),
            logistic(),
            reward=approximation == "normal",
            **quick,
        )
    many = {
        f"p{i}": module.Release("gaussian", 50 + i, (0.3 * i,), 0.2, 2.0, (-1.0, 1.0))
        for i in range(14)
    }
    record.add("surprise many", valued, module.GaussianMean(0.3), lambda: many, n_permutations=40)
    record.add("surprise refused", valued, module.GaussianMean(0.3), gram())

    def together(**params):
        release = module.GramRelease(noise_random_state=1)
        model = module.BayesianLinear(0.105, x_covariance=T)
        scorer = module.BayesianSurpriseScorer(model, random_state=0, **quick)
        X, y = np.concatenate([X for X, _ in rows]), np.concatenate([y for _, y in rows])
        party = np.repeat(["a", "b", "c"], [len(y) for _, y in rows])
        whole = module.PrivateCollaboration(
            release, scorer=scorer, model=model, random_state=0, **params
        ).fit(X, y, groups=party)
        return dict(fit=whole, privacy=whole.privacy_, releases=whole.releases_)

    record.add("collaboration", together, renyi_epsilon={"a": 1.0, "b": 0.1, "c": 1.0})
    record.add("collaboration, clear", together, epsilon=None)


def _rewards(scheme):
    """A reward scheme's facts, and those of the models that it hands out."""
    facts = _frozen(scheme)
    for name, model in getattr(scheme, "rewards_", {}).items():
        facts[f"samples of {name}"] = attempt(lambda model=model: np.asarray(model.samples))
    return facts


# PriArTa ------------------------------------------------------------------------------------------


def priarta(record):
    from skvalue import priarta as module

    rng = np.random.default_rng(0)
    buyer = rng.normal(size=(150, 5)) * np.linspace(1, 0.3, 5)
    sellers = [rng.normal(size=(n, 5)) * 0.8 + shift for n, shift in ((60, 0), (80, 0.5), (100, 2))]

    def scored(float32=False, **params):
        scorer = module.PriArTaScorer(**{"noise_random_state": 3, **params}).fit(buyer)
        summaries = scorer.summarize(sellers)
        return dict(
            fit=scorer,
            maps=attempt(scorer.model_.transform, buyer[:5]),
            rows=attempt(scorer.model_.latent_rows, buyer[:5]),
            summaries=summaries,
            json=[summary.to_json() for summary in summaries],
            events=[attempt(lambda s=summary: s.event) for summary in summaries],
            guarantees=[attempt(lambda s=summary: s.guarantee) for summary in summaries],
            moments=[attempt(summary.moments) for summary in summaries],
            scores=attempt(scorer.score_summaries, summaries),
            transformed=attempt(scorer.transform, sellers),
            explain=attempt(scorer.explain, summaries),
            floor=attempt(scorer.noise_floor, summaries),
            distances=attempt(scorer.pairwise_distances, summaries),
            errors=attempt(scorer.score_errors, summaries, n_draws=8),
        )

    for metric in ("wasserstein", "kl", "diversity", "relevance"):
        for epsilon in (None, 1.0):
            for representation in ("identity", "pca"):
                record.add(
                    f"priarta {metric}, {representation}, {epsilon}",
                    scored,
                    metric=metric,
                    epsilon=epsilon,
                    representation=representation,
                )
    for relation in ("null", "add_remove", "replace"):
        for mechanism in ("central", "local"):
            record.add(
                f"priarta {relation}, {mechanism}",
                scored,
                relation=relation,
                mechanism=mechanism,
                epsilon=2.0,
            )
    record.add("priarta subset", scored, epsilon=1.0, subset_size=30)
    record.add("priarta public subset", scored, epsilon=1.0, subset_size=30, secret_subset=False)
    record.add("priarta norm", scored, epsilon=1.0, max_norm=2.0, mean_weight=0.5, shrink=False)
    record.add("priarta unclipped", scored, max_norm=None)
    record.add("priarta latent pca", scored, epsilon=1.0, latent="pca")
    record.add(
        "priarta whitened",
        scored,
        epsilon=1.0,
        representation=module.PrincipalComponents(3, whiten=True),
    )
    record.add("priarta standardized", scored, representation=module.Identity(standardize=True))
    record.add(
        "priarta vae",
        scored,
        epsilon=1.0,
        float32=True,
        latent=module.GaussianVAE(2, n_epochs=3, random_state=0, device="cpu"),
    )
    record.add(
        "priarta simclr",
        scored,
        epsilon=1.0,
        float32=True,
        representation=module.SimCLR(
            "mlp", projection_dim=3, n_epochs=3, random_state=0, device="cpu"
        ),
    )
    record.add("priarta refused", scored, max_norm=None, epsilon=1.0)

    def seller(**params):
        model = module.PriArTaScorer(max_norm=2.0).fit(buyer).model_
        book = _ledger() if params.get("epsilon", 0.8) is not None else None
        one = module.SellerRelease(model, noise_random_state=2, ledger=book, **params)
        plan = attempt(one.plan, 80)
        return dict(fit=one.fit(sellers[1]), plan=plan, ledger=book)

    for relation in ("null", "add_remove", "replace"):
        for mechanism in ("central", "local"):
            record.add(
                f"seller {relation}, {mechanism}", seller, relation=relation, mechanism=mechanism
            )
    record.add("seller clear", seller, epsilon=None)
    record.add("seller subset", seller, subset_size=20)
    record.add("seller refused", seller, subset_size=2000)

    def exported():
        scorer = module.PriArTaScorer("pca", epsilon=1.0, noise_random_state=1).fit(buyer)
        with tempfile.TemporaryDirectory() as folder:
            scorer.export(Path(folder) / "model")
            model = module.BuyerModel.load(Path(folder) / "model")
        summary = module.SellerRelease(model, noise_random_state=1).fit(sellers[0]).summary_
        again = module.Summary.from_json(summary.to_json())
        return dict(
            latent=model.latent_rows(sellers[0]),
            summary=again,
            score=scorer.score_summaries([again]),
        )

    record.add("priarta exported", exported)
    record.add(
        "priarta attack",
        lambda: (
            module.membership_attack(
                module.SellerRelease(
                    module.PriArTaScorer(max_norm=2.0).fit(buyer).model_, noise_random_state=0
                ),
                sellers[0],
                n_runs=20,
            ).epsilon
        ),
    )

    m1, m2 = buyer.mean(axis=0), sellers[1].mean(axis=0)
    c1, c2 = np.cov(buyer.T), np.cov(sellers[1].T)
    record.add("wasserstein", module.wasserstein, m1, c1, m2, c2)
    record.add("symmetric_kl", module.symmetric_kl, m1, c1, m2, c2, ridge=0.01)
    record.add("diversity_relevance", module.diversity_relevance, c1, c2)
    record.add(
        "principal_contributions",
        module.principal_contributions,
        m1,
        c1,
        m2,
        c2,
        np.linalg.eigh(c1)[1].T,
    )
    record.add("min_max", module.min_max, np.array([3.0, 1.0, 2.0]))


# Privacy ------------------------------------------------------------------------------------------


def privacy(record):
    from skvalue import privacy as module

    events = {
        "gaussian": module.GaussianEvent(2.0, 1.5, "replace"),
        "laplace": module.LaplaceEvent(3.0, 1.0, "add_remove"),
        "discrete gaussian": module.DiscreteGaussianEvent(4.0, 3),
        "discrete gaussian, step": module.DiscreteGaussianEvent(8.0, 2, 2, "replace"),
        "discrete laplace": module.DiscreteLaplaceEvent(2.0, 1),
        "opaque": module.OpaqueEvent(0.5, 1e-6),
        "sampled": module.PoissonSampledEvent(module.DiscreteGaussianEvent(4.0, 3), 0.2),
        "composed": module.ComposedEvent(
            (module.GaussianEvent(2.0), module.LaplaceEvent(3.0), module.OpaqueEvent(0.1))
        ),
        "self-composed": module.SelfComposedEvent(module.GaussianEvent(5.0), 10),
    }
    for name, event in events.items():
        record.add(
            f"event {name}",
            lambda event=event: dict(
                event=event,
                epsilon=[attempt(module.get_epsilon, event, delta) for delta in (1e-6, 1e-3)],
                delta=[attempt(module.get_delta, event, epsilon) for epsilon in (0.3, 3.0)],
                words=attempt(module.describe_noise, event),
                relations={
                    to: attempt(module.convert, event, to)
                    for to in ("null", "add_remove", "replace")
                },
                noise=attempt(module.draw_noise, event, (3, 4), noise_random_state=1),
                added=attempt(module.add_noise, np.arange(6), event, noise_random_state=1),
                report=attempt(
                    module.make_report,
                    event,
                    1e-5,
                    notion="central",
                    unit="row",
                    protects="rows",
                    against="readers",
                    noise_random_state=1,
                ),
                again=attempt(lambda: module.event_from_dict(module.event_to_dict(event)) == event),
            ),
        )
    for relation in ("null", "add_remove", "replace"):
        record.add(
            f"calibrate {relation}",
            lambda relation=relation: dict(
                counts=[
                    attempt(module.calibrate_counts, 1.0, 1e-5, k, relation) for k in (1, 4, 30)
                ],
                gaussian=attempt(module.calibrate_gaussian, 0.7, 1e-6, 2.0, relation),
                laplace=attempt(module.calibrate_laplace, 0.7, 2.0, relation),
                discrete=attempt(module.calibrate_discrete_laplace, 0.7, 2, relation),
                ceiling=attempt(module.detection_ceiling, 1.0, 1e-5, relation),
            ),
        )
    record.add(
        "calibrate",
        lambda: module.calibrate(
            lambda scale: module.PoissonSampledEvent(
                module.GaussianEvent(scale, 1.0, "add_remove"), 0.1
            ),
            1.0,
            1e-5,
        ),
    )
    record.add(
        "gdp",
        lambda: [
            module.mu_from_epsilon(1.0, 1e-5),
            module.epsilon_from_mu(0.5, 1e-6),
            module.delta_from_mu(1.0, 0.7),
        ],
    )
    record.add("poisson_sample", module.poisson_sample, 50, 0.3, noise_random_state=1)

    def book():
        ledger = module.Ledger(None, "rows", epsilon=2.0, delta=1e-4)
        ledger.charge(module.GaussianEvent(5.0), label="first")
        over = attempt(ledger.charge, module.GaussianEvent(0.1))
        return dict(
            ledger=ledger,
            over=over,
            spent=ledger.spent,
            plan=attempt(ledger.plan, 3, epsilon=0.1, delta=1e-6),
            too_much=attempt(ledger.plan, 90, epsilon=0.1, delta=1e-6),
        )

    record.add("ledger", book)
    record.add("noise refused", module.draw_noise, events["opaque"], 3)


TABLES = (
    formulas,
    neighbours,
    retraining,
    layered,
    gradients,
    selection,
    collaborative,
    priarta,
    privacy,
)


def write(path, pattern="", verbose=False):
    """Run the table with the skvalue that is importable, and write what it gives to a file."""
    import skvalue

    record = Record(pattern, verbose)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for table in TABLES:
            before = process_time()
            table(record)
            print(f"{table.__name__}: {process_time() - before:.0f} s", flush=True)
    record.save(path)
    if verbose:
        for key, words in record.words.items():
            if words.startswith("error "):
                print(f"{key}: {words}")
    where = Path(skvalue.__file__).parent
    print(
        f"{len(record.seconds)} cases, {len(record.arrays)} arrays and {len(record.words)} facts "
        f"of {where} in {process_time():.0f} CPU seconds: {path}"
    )


# Comparing ----------------------------------------------------------------------------------------


def load(path):
    """What `write` wrote: arrays and words by field, and the cases that compute in float32."""
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files if not key.endswith("/")}
        return dict(
            arrays=arrays,
            words=json.loads(str(file["words/"])),
            float32=set(file["float32/"].tolist()),
        )


def difference(old, new):
    """Largest difference, of max(1, |old number|); infinite where shapes or NaNs differ."""
    if old.shape != new.shape:
        return np.inf
    old, new = (np.asarray(part, dtype=np.float64) for part in (old, new))
    equal = (old == new) | (np.isnan(old) & np.isnan(new))
    with np.errstate(invalid="ignore"):
        off = np.abs(new - old) / np.maximum(1, np.abs(old))
    off = np.where(equal, 0.0, np.where(np.isfinite(off), off, np.inf))
    return float(off.max(initial=0.0))


def reworded(text):
    """A report of the old commit on one line, with its false sentences as they are now."""
    text = " ".join(text.split())
    for pattern, now in REWORDED:
        text = re.sub(pattern, now, text)
    return text


def compare(old, new, exceptions=(), gone=GONE):
    """Compare two records.

    Parameters
    ----------
    old, new : dict
        ``arrays`` and ``words`` by case/field, ``float32`` a set of cases.
    exceptions : sequence of (str, float)
        Patterns of fields, and their tolerances.
    gone : str
        Pattern of fields that may be lost.

    Returns
    -------
    lines : list of str
        What to print.
    failed : bool
        Whether anything differs that must not.
    """
    lines, failures, largest = [], [], {}
    old_keys, new_keys = ({*part["arrays"], *part["words"]} for part in (old, new))

    def tolerance(key):
        for pattern, limit in exceptions:
            if re.search(pattern, key):
                return limit
        case = key.split("/")[0]
        return TOLERANCE_FLOAT32 if case in old["float32"] | new["float32"] else TOLERANCE

    for key in sorted(old_keys - new_keys):
        meant = bool(re.search(gone, key)) or np.isinf(tolerance(key))
        lines.append(f"only old{' (meant)' if meant else ''}: {key}")
        if not meant:
            failures.append(key)
    lines += [f"only new: {key}" for key in sorted(new_keys - old_keys)]
    for key in sorted(old_keys & new_keys):
        limit = tolerance(key)
        if key in old["arrays"] and key in new["arrays"]:
            off = difference(old["arrays"][key], new["arrays"][key])
            case = key.split("/")[0]
            largest[case] = max(largest.get(case, (0.0, "")), (off, key))
            if off > limit:
                failures.append(key)
                lines.append(f"{key}: {off:.2e}, limit {limit:g}")
            continue
        sides = [str(part["words"].get(key, part["arrays"].get(key))) for part in (old, new)]
        if key.endswith(("/facts", "/text")):
            sides[0] = reworded(sides[0])
            sides[1] = " ".join(sides[1].split())
        if sides[0] == sides[1] or _close_words(*sides, limit):
            continue
        kinds = [side.split(":")[0] if side.startswith("error ") else "" for side in sides]
        only_a_message = kinds[0] and kinds[0] == kinds[1]
        if not only_a_message and not np.isinf(limit):
            failures.append(key)
        what = "another message" if only_a_message else "differs"
        start = next((i for i, (a, b) in enumerate(zip(*sides)) if a != b), min(map(len, sides)))
        parts = [repr(side[max(0, start - 60) : start + 90]) for side in sides]
        lines.append(f"{key}: {what}, from character {start}\n    {parts[0]}\n    {parts[1]}")
    lines.append("")
    lines += [f"{off:.1e}  {case}" for case, (off, _) in sorted(largest.items()) if off > 0]
    n_equal = sum(off == 0 for off, _ in largest.values())
    lines.append(f"{n_equal} of {len(largest)} cases with numbers have the same bits")
    for name, single in (("float64", False), ("float32", True)):
        some = [
            part
            for case, part in largest.items()
            if (case in old["float32"] | new["float32"]) == single
        ]
        if some:
            off, key = max(some)
            lines.append(f"largest difference, {name}: {off:.2e} {key if off else ''}")
    private = [key for key in old_keys & new_keys if key.endswith(("/event", "/facts", "/text"))]
    same = len(private) - sum(key in failures for key in private)
    lines.append(f"{same} of {len(private)} privacy events and reports are as they were")
    lines.append(f"{len(failures)} failures" if failures else "all as it was")
    return lines, bool(failures)


_NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?|-?\d+e[+-]?\d+")


def _close_words(old, new, limit):
    """Whether words agree but for the last digits of numbers in them, as in a JSON of floats."""
    if _NUMBER.sub("#", old) != _NUMBER.sub("#", new):
        return False
    old, new = (np.array(_NUMBER.findall(side), dtype=np.float64) for side in (old, new))
    return difference(old, new) <= limit


def child_environment(tree):
    """Environment in which Python imports the skvalue of a work tree."""
    tree = Path(tree).resolve()
    if not (tree / "skvalue" / "__init__.py").exists():
        raise SystemExit(f"{tree} holds no skvalue.")
    return {**os.environ, "PYTHONPATH": str(tree)}


def run(tree, pattern, exceptions, gone):
    """Write both trees' values, each in a process of its own, and compare."""
    here = Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, root in (("old", tree), ("new", here)):
            paths.append(str(Path(folder) / f"{name}.npz"))
            command = [sys.executable, __file__, "write", paths[-1], "-k", pattern]
            environment = child_environment(root) | ENVIRONMENT
            subprocess.run(command, check=True, env=environment, cwd=folder)
        return compare(*map(load, paths), exceptions, gone)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    writes = commands.add_parser("write")
    writes.add_argument("file")
    writes.add_argument("-v", "--verbose", action="store_true", help="seconds of cases, and errors")
    compares = commands.add_parser("compare")
    compares.add_argument("old")
    compares.add_argument("new")
    runs = commands.add_parser("run")
    runs.add_argument("tree", help="a work tree of the old commit")
    for command in (writes, runs):
        command.add_argument("-k", dest="pattern", default="", help="pattern of cases")
    for command in (compares, runs):
        command.add_argument(
            "--except", dest="exceptions", action="append", default=[], metavar="PATTERN=TOLERANCE"
        )
        command.add_argument("--gone", action="append", default=[GONE], metavar="PATTERN")
    options = parser.parse_args()
    if options.command == "write":
        if any(os.environ.get(name) != value for name, value in ENVIRONMENT.items()):
            command = [sys.executable, *sys.orig_argv[1:]]
            return subprocess.run(command, env={**os.environ, **ENVIRONMENT}).returncode
        return write(options.file, options.pattern, options.verbose)
    given = (item.rsplit("=", 1) for item in options.exceptions)
    exceptions = [(pattern, float(limit)) for pattern, limit in given] + EXCEPTIONS
    gone = "|".join(options.gone)
    if options.command == "compare":
        lines, failed = compare(load(options.old), load(options.new), exceptions, gone)
    else:
        lines, failed = run(options.tree, options.pattern, exceptions, gone)
    print("\n".join(lines))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
