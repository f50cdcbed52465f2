"""One private row moves its own contribution to what is released, and nothing else.

The statistics of private methods are computed before their noise, with a row and with
another in its place, or without it. They must differ by at most the sensitivity of the
event that is charged, whatever the row is. Nothing is refused, and no number of a
private row is in a message.
"""

import warnings
from contextlib import ExitStack, contextmanager
from itertools import product
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skvalue import (
    FederatedSemivalueValuer,
    GradientSemivalueValuer,
    TKNNShapleyValuer,
)
from skvalue.derivatives import (
    LinearGradientModel,
    LinearRowModel,
    Run,
    TorchGradientModel,
    TorchRowModel,
    Utility,
)
from skvalue.exceptions import NoiseExceedsSignalWarning
from skvalue.priarta import PriArTaScorer, SellerRelease
from skvalue.privacy import Ledger
from tests.cases import one_of_each
from tests.privacy.one_row import (
    BAD_ROWS,
    BAD_TARGETS,
    CLIP,
    FITS,
    N_FEATURES,
    N_ROWS,
    NO_CLASS,
    NULLS,
    REMOVES,
    check_statistics,
    draw_data,
    each_row,
    each_target,
    in_run,
    linear_module,
    no_noise,
)

# Sums of gradients of players ---------------------------------------------------------

KINDS = {"logistic": 2, "softmax": 3, "linear": 0}  # and their numbers of classes
ENGINES = ("compiled", "torch float32", "torch float64")
PLAYERS = np.arange(N_ROWS) % 3


def gradient_model(engine, kind, unit, data, has_basis, step_weights=None):
    """The model of three players, as private fits make it."""
    n_classes = KINDS[kind]
    n_outputs = n_classes if kind == "softmax" else 1
    if engine != "compiled" and n_classes:
        n_outputs = n_classes
    options = {"X_val": data.X_val, "y_val": data.y_val, "clip": CLIP, "unit": unit}
    options["step_weights"] = step_weights
    n_parameters = n_outputs * (N_FEATURES + 1)
    if has_basis:
        square = np.random.default_rng(0).normal(size=(n_parameters, 2))
        options["basis"] = np.linalg.qr(square)[0]
    y = data.y
    if n_classes:
        y = np.where(np.isin(y, range(n_classes)), y, n_classes).astype(int)
    rows = (data.X, y, PLAYERS)
    if engine == "compiled":
        weights = np.full(len(data.y_val), 1 / len(data.y_val))
        return LinearGradientModel(
            *rows,
            weights=weights,
            kind=kind,
            n_classes=n_classes,
            utility="neg_loss",
            private=True,
            **options,
        )
    dtype = torch.float32 if engine.endswith("32") else torch.float64
    module = torch.nn.Linear(N_FEATURES, n_outputs, dtype=dtype)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.linspace(-1, 1, parameter.numel()).view_as(parameter))
    if not n_classes:
        module = torch.nn.Sequential(module, torch.nn.Flatten(0))
    return TorchGradientModel(
        module, None, *rows, n_classes=n_classes, private=True, **options
    )


def released_gradients(model, unit):
    """What the players release at some parameters, before noise, in two ways.

    Sums of clipped gradients of rows, or clipped means: (2, n_thetas, 3, p).
    """
    n_rows = N_ROWS // 3 if unit == "example" else 1
    releases = []
    for size in (0.0, 1.0, 1e3):
        theta = np.linspace(-size, size, model.n_parameters)
        thetas = np.tile(theta, (3, 1))
        at_once = model.gradients(thetas, np.arange(3))

        # A walk along each player, with noise of zero.
        path, _, lost = model.walk(
            orders=np.arange(3)[:, None],
            rates=np.ones(3),
            noise=np.zeros((3, 1, model.n_parameters)),
            noise_std=np.full(3, 1e-30),
            thetas=thetas,
        )
        assert (lost == -1).all()
        steps = np.diff(model.as_array(path), axis=1)[:, 0]
        steps = steps / model.step_weights[:, None]
        releases.append([n_rows * at_once, -n_rows * steps])
    return np.moveaxis(np.array(releases), 1, 0)


def check_gradients(engine, kind, unit, has_basis, data, other, step_weights=None):
    """Compare what the three players release of two data sets."""
    gradients = []
    for one in (data, other):
        model = gradient_model(engine, kind, unit, one, has_basis, step_weights)
        gradients.append(released_gradients(model, unit))
    at_once, by_steps = gradients[0] - gradients[1]

    # The parties of the other rows release the same bits.
    assert not at_once[:, 1:].any()
    assert not by_steps[:, 1:].any()
    bound = 2 * CLIP  # without any allowance: bounds leave room for rounding
    assert np.linalg.norm(at_once[:, 0], axis=1).max() <= bound
    # Parameters of walks are rounded.
    rounding = 1e-2 if engine == "torch float32" else 1e-9
    assert np.linalg.norm(by_steps[:, 0], axis=1).max() <= bound + rounding
    return gradients[1][0]


each_model = pytest.mark.parametrize(
    ("engine", "kind", "unit", "has_basis"),
    [*product(ENGINES, KINDS, ("example", "party"), (False, True))],
)


@each_model
@each_row
def test_a_row_moves_the_sum_of_its_party_by_its_own_gradient(
    engine, kind, unit, has_basis, bad
):
    data = draw_data(KINDS[kind])
    other = data.with_row(BAD_ROWS[bad])
    released = check_gradients(engine, kind, unit, has_basis, data, other)
    # The other rows of the party are still there.
    assert released[:, 0].any()


@pytest.mark.parametrize("weight", [0.05, 20.0])
@pytest.mark.parametrize("unit", ["example", "party"])
@pytest.mark.parametrize("engine", ENGINES)
@each_row
def test_a_row_moves_a_weighted_step_by_the_weight_times_its_gradient(
    engine, unit, weight, bad
):
    """Weights are applied to what was released, not to what is clipped."""
    data = draw_data(2)
    other = data.with_row(BAD_ROWS[bad])
    weights = np.array([weight, 1.0, 1.0])
    check_gradients(engine, "logistic", unit, False, data, other, weights)


@pytest.mark.parametrize("has_basis", [False, True])
@pytest.mark.parametrize("unit", ["example", "party"])
@pytest.mark.parametrize("engine", ENGINES)
@each_target
def test_a_target_moves_the_sum_of_its_party_by_its_own_gradient(
    engine, unit, has_basis, bad
):
    data = draw_data(0)
    other = data.with_target(BAD_TARGETS[bad])
    released = check_gradients(engine, "linear", unit, has_basis, data, other)
    assert released[:, 0].any()


@pytest.mark.parametrize(
    ("engine", "kind"),
    [*product(ENGINES[1:], ["logistic", "softmax"]), ("compiled", "logistic")],
)
def test_a_label_of_no_class_leaves_the_others_of_the_party(engine, kind):
    data = draw_data(KINDS[kind])
    other = data.with_target(NO_CLASS)
    model = gradient_model(engine, kind, "example", other, False)
    rest = data.with_row(0.0, NO_CLASS)
    expected = gradient_model(engine, kind, "example", rest, False)
    thetas = np.tile(np.linspace(-1, 1, model.n_parameters), (3, 1))
    np.testing.assert_array_equal(
        model.gradients(thetas, np.arange(3)), expected.gradients(thetas, np.arange(3))
    )


# Statistics of whole fits -------------------------------------------------------------


@pytest.mark.parametrize("name", FITS)
@each_row
def test_a_row_moves_the_statistic_by_its_sensitivity(name, bad):
    data = draw_data(FITS[name][1])
    check_statistics(name, data, data.with_row(BAD_ROWS[bad]))


@pytest.mark.parametrize("name", [n for n, (_, c, _) in FITS.items() if c])
@pytest.mark.parametrize("label", [NO_CLASS, np.nan])
def test_a_label_moves_the_statistic_by_its_sensitivity(name, label):
    data = draw_data(FITS[name][1])
    check_statistics(name, data, data.with_target(label))


@pytest.mark.parametrize("name", [n for n, (_, c, _) in FITS.items() if not c])
@each_target
def test_a_target_moves_the_statistic_by_its_sensitivity(name, bad):
    data = draw_data(0)
    check_statistics(name, data, data.with_target(BAD_TARGETS[bad]))


@pytest.mark.parametrize("name", NULLS)
@each_row
def test_a_null_row_moves_the_statistic_by_its_sensitivity(name, bad):
    data = draw_data(FITS[name][1])
    null = data.with_row(np.nan)
    check_statistics(name, null, data.with_row(BAD_ROWS[bad]), n_changes=1)


@pytest.mark.parametrize("name", REMOVES)
@each_row
def test_a_row_less_moves_the_statistic_by_its_sensitivity(name, bad):
    data = draw_data(2).with_row(BAD_ROWS[bad])
    check_statistics(name, data, data.without_row())


NUMBERS = [
    *BAD_ROWS.values(),
    *(0.0, -0.0, 1.0, -1.0, 1e-300, 1e-155, 1e8, 1e16, 1e38, 3.5e38, 1e75, 1e76),
    *(1.3e154, 1.4e154, -1e300, np.finfo(float).max),
    np.uint64(0x7FF8DEAD00BEEF01).view(np.float64),  # another NaN
]


def random_row(data, rng):
    """A copy of a row or a point, a row at the bound of norms, or nasty numbers."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.choice(data.X).copy()
    if kind == 1:
        return rng.choice(data.X_val).copy()
    if kind == 2:
        direction = rng.normal(size=N_FEATURES)
        length = rng.choice([1.0, np.nextafter(1.0, 2.0), CLIP, 3.0])
        return length * direction / np.linalg.norm(direction)
    return rng.choice(NUMBERS, size=N_FEATURES)


def random_neighbours(name, rng):
    """Two data sets of nasty rows that differ in the first, or lack it."""
    _, n_classes, removes = FITS[name]
    data = draw_data(n_classes)
    targets = [0, 1, NO_CLASS, np.nan] if n_classes else NUMBERS
    neighbours = []
    X = rng.choice([1.0, 1e-3, 1e3]) * data.X
    y = data.y.astype(np.float64)
    for i in np.flatnonzero(rng.random(len(X)) < 0.15):
        X[i] = random_row(data, rng)
        y[i] = rng.choice(targets)
    for _ in range(2):
        other = data._replace(X=X.copy(), y=y.copy())
        other.X[0] = random_row(data, rng)
        other.y[0] = rng.choice(targets)
        neighbours.append(other)
    if removes and rng.random() < 0.5:
        return neighbours[0], neighbours[0].without_row()
    return neighbours


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_no_random_neighbours_are_farther_apart(name):
    rng = np.random.default_rng(0)
    for _ in range(30):
        check_statistics(name, *random_neighbours(name, rng))


# Samples ------------------------------------------------------------------------------


def row_model(engine, n_classes):
    if engine == "compiled":
        return LinearRowModel(N_FEATURES, n_classes)
    dtype = torch.float32 if engine.endswith("32") else torch.float64
    module = torch.nn.Sequential(
        torch.nn.Linear(N_FEATURES, 4, dtype=dtype),
        torch.nn.Tanh(),
        torch.nn.Linear(4, n_classes or 1, dtype=dtype),
    )
    X = draw_data(n_classes).X_val
    return TorchRowModel(module, None, X, n_classes=n_classes, device="cpu")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n_classes", [0, 2, 3])
@each_row
def test_a_row_moves_the_sum_of_a_sample_by_at_most_the_bound(engine, n_classes, bad):
    """Without any allowance: the bound of the gradients leaves room for rounding."""
    data = draw_data(n_classes)
    model = row_model(engine, n_classes)
    utility = Utility(model, model.rows(data.X_val, data.y_val), np.ones(9) / 9)
    run = Run(utility, N_ROWS, CLIP, 1.0, 1, [])
    rows = model.rows(data.X, data.y)
    bad_rows = model.rows(data.with_row(BAD_ROWS[bad]).X, data.y)

    def sum_of(rows, theta, sample):
        direction = np.ones((1, len(theta)))
        total, _ = model.gradient_sum_and_products(
            theta,
            rows[np.array(sample, dtype=int)],
            direction,
            run.max_norm,
            is_secret=True,
        )
        return total

    for size in (0.1, 10.0):
        theta = np.linspace(-size, size, model.n_parameters)
        for others in ([], [5], [1, 2, 4, 11], list(range(1, N_ROWS))):
            without = sum_of(rows, theta, others)
            clean = sum_of(rows, theta, [0, *others])
            unusual = sum_of(bad_rows, theta, [0, *others])
            assert np.linalg.norm(clean - without) <= CLIP
            assert np.linalg.norm(unusual - without) <= CLIP
            assert np.linalg.norm(unusual - clean) <= 2 * CLIP


@pytest.mark.parametrize(
    ("order", "make_model"), one_of_each([1, 2], [lambda: "auto", linear_module])
)
def test_an_empty_sample_is_a_step_of_noise(make_model, order):
    data = draw_data(2)
    ledger = Ledger(None, "rows", epsilon=1.0, delta=1e-5)
    valuer = in_run(
        model=make_model(), order=order, batch_size=1, n_steps=25, ledger=ledger
    )
    data.fit(valuer)  # a sample is empty with probability 0.35
    assert np.isfinite(valuer.values_).all()
    assert (np.diff(valuer.trajectory_, axis=0) != 0).any(axis=1).all()
    assert ledger.n_charges == 1


# Containers and numbers of rows -------------------------------------------------------


def in_file(X, folder):
    np.save(folder / "rows.npy", X)
    return np.load(folder / "rows.npy", mmap_mode="r")


def in_dask(X, folder):
    return pytest.importorskip("dask.array").from_array(X, chunks=(5, N_FEATURES))


CONTAINERS = {
    "list": lambda X, folder: X.tolist(),
    "frame": lambda X, folder: pytest.importorskip("pandas").DataFrame(X),
    "file": in_file,
    "dask": in_dask,
    "csr": lambda X, folder: sparse.csr_array(X),
    "csc": lambda X, folder: sparse.csc_array(X),
}


@pytest.mark.filterwarnings("ignore::skvalue.privacy.SeededNoiseWarning")
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("bad", BAD_ROWS)
def test_counts_of_odd_rows_are_those_of_an_array(container, metric, bad, tmp_path):
    data = draw_data(2).with_row(BAD_ROWS[bad])
    radius = 0.4 if metric == "cosine" else 1.5
    valuer = TKNNShapleyValuer(radius, metric=metric, epsilon=1.0, noise_random_state=0)
    expected = data.fit(clone(valuer)).values_
    rows = CONTAINERS[container](data.X, tmp_path)
    values = data._replace(X=rows).fit(valuer).values_
    np.testing.assert_array_equal(values, expected)


@pytest.mark.filterwarnings("ignore::skvalue.privacy.SeededNoiseWarning")
@pytest.mark.parametrize("engine", ["torch", "faiss"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("bad", BAD_ROWS)
def test_counts_of_odd_rows_are_those_of_the_native_engine(engine, metric, bad):
    """In float32, in which all engines compute: none refuses a row."""
    pytest.importorskip(engine)
    data = draw_data(2).with_row(BAD_ROWS[bad])
    with np.errstate(over="ignore"):
        data = data._replace(
            X=data.X.astype(np.float32), X_val=data.X_val.astype(np.float32)
        )
    radius = 0.4 if metric == "cosine" else 1.5
    valuer = TKNNShapleyValuer(radius, metric=metric, epsilon=1.0, noise_random_state=0)
    expected = data.fit(clone(valuer)).counts_
    counts = data.fit(valuer.set_params(engine=engine, device="cpu")).counts_
    np.testing.assert_array_equal(counts, expected)


def test_faiss_takes_no_private_rows_that_it_might_refuse():
    data = draw_data(2)
    valuer = TKNNShapleyValuer(1.5, epsilon=1.0, engine="faiss", device="cpu")
    with pytest.raises(ValueError, match="X must be in float32 for engine='faiss'"):
        data.fit(valuer)


# What a transformer cannot map, or maps to other numbers than any row: a column and
# its entry.
UNUSUAL = {
    "nan": ("size", np.nan),
    "inf": ("size", np.inf),
    "None": ("size", None),
    "NA": ("size", pd.NA),
    "text": ("size", "large"),
    "date": ("size", pd.Timestamp("2026-01-01")),
    "new category": ("colour", "new"),
    "missing category": ("colour", None),
    "number as category": ("colour", 3.5),
}


def frame_of(X, entry=None):
    """Rows as a frame of numbers and a category; another entry may be in the last."""
    colours = np.array(["red", "blue"], dtype=object)[(X[:, 1] > 0).astype(int)]
    frame = pd.DataFrame({"size": X[:, 0], "weight": X[:, 2], "colour": colours})
    if entry is not None:
        column, value = entry
        frame[column] = frame[column].astype(object)
        frame.loc[len(frame) - 1, column] = value
    return frame


def columns(public):
    encoder = OneHotEncoder(sparse_output=False)
    steps = [("n", StandardScaler(), ["size", "weight"]), ("c", encoder, ["colour"])]
    return ColumnTransformer(steps, sparse_threshold=0).fit(public)


def sparse_columns(public):
    steps = [("n", StandardScaler(), ["size"]), ("c", OneHotEncoder(), ["colour"])]
    return ColumnTransformer(steps, sparse_threshold=1).fit(public)


def numeric_columns(public):
    return make_pipeline(
        ColumnTransformer([("n", "passthrough", ["size", "weight"])]), PCA(2)
    ).fit(public)


def function(public):
    return lambda frame: np.asarray(frame[["size", "weight"]], dtype=np.float64)


@pytest.mark.parametrize("unusual", UNUSUAL)
@pytest.mark.parametrize(
    "make_map", [columns, sparse_columns, numeric_columns, function]
)
def test_a_row_that_an_embedding_refuses_is_as_one_of_nan(make_map, unusual):
    data = draw_data(2)
    public = frame_of(data.X_val)
    embedding = make_map(public)
    is_transformer = hasattr(embedding, "transform")
    if is_transformer:
        embedding = FrozenEstimator(embedding)
    valuer = TKNNShapleyValuer(1.5, metric="euclidean", epsilon=1.0)

    def counts(embedding, X, X_val):
        with warnings.catch_warnings(), no_noise() as released:
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", NoiseExceedsSignalWarning)
            clone(valuer).set_params(embedding=embedding).fit(
                X, data.y, X_val=X_val, y_val=data.y_val
            )
        return released[0][0]

    # Vectors, of which the last is not finite if the embedding uses the odd column.
    def vectors(frame):
        mapped = embedding.transform(frame) if is_transformer else embedding(frame)
        return np.array(mapped.toarray() if sparse.issparse(mapped) else mapped)

    expected = vectors(frame_of(data.X))
    column, _ = UNUSUAL[unusual]
    if column == "size" or make_map in (columns, sparse_columns):
        expected[-1] = np.nan
    expected = counts(None, expected, vectors(public))
    moved = counts(embedding, frame_of(data.X, UNUSUAL[unusual]), public)
    np.testing.assert_array_equal(moved, expected)


def first_rows(data, n):
    return data._replace(X=data.X[:n], y=data.y[:n])


@pytest.mark.parametrize("name", REMOVES)
def test_no_number_of_rows_is_refused_where_it_is_private(name):
    data = draw_data(2)
    for n in (0, 1):
        check_statistics(name, first_rows(data, n), first_rows(data, n + 1))


def summary_of_few_rows(data):
    model = PriArTaScorer(max_norm=1.0).fit(data.X_val).model_
    return SellerRelease(model, relation="replace").fit(data.X)


@pytest.mark.parametrize(
    "fit",
    [
        lambda data: data.fit(TKNNShapleyValuer(1.0, epsilon=1.0, relation="replace")),
        lambda data: data.fit(in_run()),
        summary_of_few_rows,
    ],
    ids=["tknn", "in-run", "summary"],
)
def test_few_rows_are_refused_where_their_number_is_public(fit):
    with pytest.raises(ValueError, match="minimum of 2|at least 2 rows"):
        fit(first_rows(draw_data(2), 1))


# Whole trainings ----------------------------------------------------------------------


@contextmanager
def recorded(name, replay=None):
    """Record what a method of both models returns; with `replay`, return that instead.

    So two trainings release the same in every step, although their statistics differ:
    what a row changes in a step is compared at the same parameters.
    """
    records = []
    with ExitStack() as stack:
        for model in (LinearGradientModel, TorchGradientModel):
            method = getattr(model, name)

            def call(self, *args, method=method, **options):
                past = options.get("past")
                before = None if past is None else past.copy()
                returned = method(self, *args, **options)
                after = None if past is None else past.copy()
                record = Step(self, args, options, before, after, returned)
                records.append(record)
                if replay is None:
                    return returned
                former = replay[len(records) - 1]
                if past is not None:
                    past[:] = former.after
                return former.returned

            stack.enter_context(patch.object(model, name, call))
        yield records


class Step(NamedTuple):
    """One call of a method of a model; `before` and `after`: past releases."""

    model: object
    args: tuple
    options: dict
    before: np.ndarray | None
    after: np.ndarray | None
    returned: object

    def releases(self):
        """What the players of a walk release, (n_players, p).

        Those after player 0, who take their steps at other parameters, are left out.
        """
        (order,), _ = self.args[:2]
        # The means of their releases so far, of which there have been t.
        releases = self.before + self.options["t"] * (self.after - self.before)
        releases[order[np.argmin(order) + 1 :]] = 0.0
        return releases


def train(valuer, data, name, replay=None):
    """The steps of a training without noise, and the event of its noise."""
    with no_noise() as released, recorded(name, replay) as steps:
        data.fit(clone(valuer), groups=PLAYERS)
    ((_, event),) = released
    return steps, event


each_training = pytest.mark.parametrize(
    ("make_model", "unit", "trust", "parameters"),
    [
        *product(
            [lambda: "auto", linear_module],
            ["party", "example"],
            ["local", "server"],
            [{}, {"n_components": 2, "clip": "median"}],
        )
    ],
)


def check_training(valuer, name, releases_of, bad):
    """Compare what the parties release in each step of two trainings."""
    data = draw_data(2)
    # The unit that is replaced: a row of party 0, or all of its rows.
    unit = PLAYERS == 0 if valuer.unit == "party" else np.arange(N_ROWS) == 0
    X = data.X.copy()
    X[unit] = BAD_ROWS[bad]
    other = data._replace(X=X)
    if valuer.trust == "server":  # the relation is that to rows that count as zero
        X = data.X.copy()
        X[unit] = np.nan
        data = data._replace(X=X)

    steps, event = train(valuer, data, name)
    others, _ = train(valuer, other, name, replay=steps)
    assert len(steps) == len(others) > 1
    # Means are released of rows, with the noise of their sums.
    n_summed = N_ROWS // 3 if valuer.unit == "example" else 1
    for step, changed in zip(steps, others):
        change = releases_of(changed) - releases_of(step)
        assert not change[1:].any()
        norm = n_summed * np.linalg.norm(change[0])
        assert norm <= event.sensitivity


@each_training
@each_row
def test_all_updates_of_a_federated_fit_move_by_their_sensitivity(
    make_model, unit, trust, parameters, bad
):
    valuer = FederatedSemivalueValuer(
        make_model(),
        epsilon=1.0,
        n_rounds=3,
        n_permutations=2,
        unit=unit,
        trust=trust,
        learning_rate=1.0,
        random_state=0,
        **parameters,
    )
    check_training(valuer, "gradients", lambda step: step.returned, bad)


@each_training
@each_row
def test_all_steps_of_a_gradient_fit_move_by_their_sensitivity(
    make_model, unit, trust, parameters, bad
):
    valuer = GradientSemivalueValuer(
        make_model(),
        epsilon=1.0,
        n_permutations=3,
        unit=unit,
        trust=trust,
        learning_rate=1.0,
        random_state=0,
        **parameters,
    )
    check_training(valuer, "walk", Step.releases, bad)
