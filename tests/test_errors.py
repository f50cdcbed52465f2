"""Stated errors beside true ones: rows and groups, clean, wrong and imbalanced
labels."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler

from skvalue import (
    BayesianSurpriseScorer,
    DataOOBValuer,
    FederatedSemivalueValuer,
    GradientSemivalueValuer,
    InfluenceValuer,
    InRunShapleyValuer,
    KNNShapleyValuer,
    LayeredShapleyValuer,
    PredictiveValueScorer,
    ScoresValuer,
    SemivalueValuer,
    TKNNShapleyValuer,
    UnrolledValuer,
)
from skvalue.collaborative import GramRelease
from skvalue.datasets import flip_labels
from skvalue.valuers import suggest_radius

from .collaborative.parties import linear_model, release_all, simulate

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::skvalue.privacy.SeededNoiseWarning"),
]

# The label that is made rare, or those that are.
SETS = {
    "iris": (load_iris, [0]), "wine": (load_wine, [2]), "cancer": (load_breast_cancer, [0]),
    "digits": (load_digits, [5, 6, 7, 8, 9]),
}  # fmt: skip


def problem(name, rare=None, wrong=0.0):
    """Rows and validation points, standardised by the points; `rare` is a fraction of
    the rows."""
    load, labels = SETS[name]
    X, y = load(return_X_y=True)
    if rare is not None:
        minor = np.isin(y, labels)
        n = max(4, round((~minor).sum() * rare / (1 - rare)))
        kept = np.random.default_rng(1).permutation(np.flatnonzero(minor))[:n]
        rows = np.r_[np.flatnonzero(~minor), kept]
        X, y = X[rows], minor[rows].astype(int)
    n_val = min(100, len(X) // 3)
    X, X_val, y, y_val = train_test_split(
        X, y, test_size=n_val, stratify=y, random_state=0
    )
    X, y, scaler = X[:1000], y[:1000], StandardScaler().fit(X_val)
    if wrong:
        y, _ = flip_labels(y, wrong, random_state=2)
    return scaler.transform(X), y, scaler.transform(X_val), y_val


# Least fraction of the rows within two errors, where it is not .88, and largest error
# of the sum relative to the L1 norm of the exact values, where it is not .2 and .1.
# With two rare points and five rare rows the noise decides what is known of them.
LEAST_WITHIN = {("wine", 0.05, 0.1): 0.72}


@pytest.mark.parametrize("wrong", [0.0, 0.1])
@pytest.mark.parametrize("rare", [None, 0.1, 0.05])
@pytest.mark.parametrize("name", SETS)
def test_private_tknn(name, rare, wrong):
    X, y, X_val, y_val = problem(name, rare, wrong)
    points = {"X_val": X_val, "y_val": y_val}
    exact = TKNNShapleyValuer().fit(X, y, **points).values_
    norm = np.abs(exact).sum()
    for epsilon, most in ((1.0, 0.2), (3.0, 0.1)):
        within, sums, by_class = [], [], []
        for seed in range(8):
            valuer = TKNNShapleyValuer(epsilon=epsilon, noise_random_state=seed)
            valuer.fit(X, y, **points)
            gap = valuer.values_ - exact
            within.append(np.mean(np.abs(gap) <= 2 * valuer.values_error_))
            sums.append(gap.sum() / norm)
            valuer.fit(X, y, **points, groups=y)
            gap = valuer.values_ - np.bincount(y, exact)
            by_class.append(np.mean(np.abs(gap) <= 2 * valuer.values_error_))
        least = LEAST_WITHIN.get((name, rare, wrong), 0.88)
        assert np.mean(within) >= least, (epsilon, within)
        assert np.mean(by_class) >= least - 0.08, (epsilon, by_class)
        assert abs(np.mean(sums)) <= most, (epsilon, sums)


@pytest.mark.parametrize("batch_size", [None, 40])
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
@pytest.mark.parametrize("name", ["digits", "cancer"])
def test_private_in_run(name, epsilon, batch_size):
    """Beside a run without noise and secret samples."""
    X, y, X_val, y_val = problem(name)
    points, random = {"X_val": X_val, "y_val": y_val}, np.arange(len(y)) % 20
    private = InRunShapleyValuer(epsilon=epsilon, batch_size=batch_size, random_state=0)
    within = {"rows": [], "classes": [], "random": []}
    for seed in range(12):
        private.set_params(noise_random_state=seed).fit(X, y, **points)
        plain = InRunShapleyValuer(
            clip=1.0, learning_rate=private.learning_rate_, random_state=0
        )
        exact = plain.fit(X, y, **points).values_
        gap = np.abs(private.values_ - exact)
        within["rows"].append(np.mean(gap <= 2 * private.values_error_))
        for key, groups in (("classes", y), ("random", random)):
            private.fit(X, y, **points, groups=groups)
            gap = np.abs(private.values_ - np.bincount(groups, exact))
            within[key].append(np.mean(gap <= 2 * private.values_error_))
    means = {key: np.mean(found) for key, found in within.items()}
    assert all(mean >= 0.88 for mean in means.values()), means


# Values whose errors come from drawn coalitions ---------------------------------------

# Mean squared error over the stated variance, and the fraction of the values within two
# errors.
SQUARES, WITHIN = (0.03, 1.5), 0.88
SEMIVALUES = ["shapley", "banzhaf", (4.0, 1.0), (1.0, 4.0)]
KINDS = {
    "clean": ("iris", None, 0.0), "flipped": ("iris", None, 0.2),
    "imbalanced": ("cancer", 0.2, 0.0),
}  # fmt: skip


def few_players(kind, grouped, n=12):
    """Rows or groups of rows as n players, each class among the first rows, and 40
    points."""
    X, y, X_val, y_val = problem(*KINDS[kind])
    first = np.concatenate([np.flatnonzero(y == label)[:2] for label in np.unique(y)])
    rows = np.r_[first, np.setdiff1d(np.arange(len(y)), first)][
        : 4 * n if grouped else n
    ]
    groups = np.arange(len(rows)) % n if grouped else None
    return (
        X[rows, :4],
        y[rows],
        {"X_val": X_val[:40, :4], "y_val": y_val[:40], "groups": groups},
    )


def in_range(z, squares=SQUARES, within=WITHIN):
    """Whether errors divided by stated errors are as they should be, and what they
    are."""
    found = float(np.mean(np.square(z))), float(np.mean(np.abs(z) <= 2))
    return squares[0] <= found[0] <= squares[1] and found[1] >= within, found


@pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning")
@pytest.mark.parametrize("adjust", [True, False])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_semivalues_of_a_fit_and_of_its_coalitions(kind, grouped, adjust):
    X, y, options = few_players(kind, grouped)
    exact = SemivalueValuer(GaussianNB(), sampler="exact").fit(X, y, **options)
    true = {target: exact.reweight(target).values_ for target in SEMIVALUES}
    for source in SEMIVALUES:
        found = {target: [] for target in SEMIVALUES}
        sampler = "subsets" if source == "banzhaf" else "stratified"
        for seed in range(16):
            valuer = SemivalueValuer(
                GaussianNB(), semivalue=source, sampler=sampler, adjust=adjust,
                max_evaluations=1600, random_state=seed,
            ).fit(X, y, **options)  # fmt: skip
            for target in SEMIVALUES:
                if source == "banzhaf" != target:
                    with pytest.raises(
                        ValueError, match="are drawn too rarely for this semi"
                    ):
                        valuer.reweight(target)
                    continue
                other = valuer if target == source else valuer.reweight(target)
                found[target].append(
                    (other.values_ - true[target]) / other.values_error_
                )
        for target in [target for target in SEMIVALUES if found[target]]:
            fine, how = in_range(found[target])
            assert fine, (source, target, how)


# Least fraction within two errors: permutations hit few of the coalitions that Banzhaf
# values weight most, and blocks have 8 replicates.
DRAWN = {
    "permutation": (SemivalueValuer(sampler="permutation", max_evaluations=800), 0.88),
    "antithetic": (SemivalueValuer(sampler="antithetic", max_evaluations=800), 0.88),
    "permutation, Banzhaf": (
        SemivalueValuer(sampler="permutation", semivalue="banzhaf", max_evaluations=800), 0.78,
    ),
    "permutation, Beta": (
        SemivalueValuer(sampler="permutation", semivalue=(4, 1), max_evaluations=800), 0.88,
    ),
    "layers, blocks": (LayeredShapleyValuer(max_evaluations=1500), 0.86),
    "layers, few blocks": (LayeredShapleyValuer(max_evaluations=300), 0.8),
    "layers, iid": (LayeredShapleyValuer(design="iid", max_evaluations=300), 0.9),
    "layers, Poisson": (LayeredShapleyValuer(design="poisson", max_evaluations=300), 0.88),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning")
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DRAWN)
def test_drawn_orders_and_layers(name, kind, grouped):
    valuer, least = DRAWN[name]
    X, y, options = few_players(kind, grouped)
    exact = SemivalueValuer(GaussianNB(), sampler="exact").fit(X, y, **options)
    true = exact.reweight(getattr(valuer, "semivalue", "shapley")).values_
    gaps, errors = [], []
    for seed in range(12):
        valuer.set_params(estimator=GaussianNB(), random_state=seed).fit(
            X, y, **options
        )
        gaps.append(valuer.values_ - true)
        errors.append(valuer.values_error_)
    gaps, errors = np.abs(gaps), np.array(errors)
    assert errors.min() > 0
    assert np.mean(gaps <= 2 * errors) >= least, np.mean(gaps <= 2 * errors)
    assert 0.6 <= np.sqrt(np.mean(gaps**2) / np.mean(errors**2)) <= 1.2


@pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning")
@pytest.mark.parametrize("adjust", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_means_over_splits(kind, adjust):
    X, y, options = few_players(kind, True)
    valuer, found = SemivalueValuer(GaussianNB(), cv=3, sampler="exact"), []
    true = valuer.fit(X, y, groups=options["groups"]).values_
    valuer.set_params(sampler="stratified", adjust=adjust, max_evaluations=3600)
    for seed in range(12):
        valuer.set_params(random_state=seed).fit(X, y, groups=options["groups"])
        found.append((valuer.values_ - true) / valuer.values_error_)
    fine, how = in_range(found)
    assert fine, how


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    ("name", "rare", "wrong"),
    [
        ("iris", None, 0.0),
        ("iris", None, 0.1),
        ("cancer", None, 0.1),
        ("cancer", 0.1, 0.0),
    ],
)
def test_bags(name, rare, wrong, grouped):
    """Rows that are nearly always predicted right have errors, too."""
    X, y, *_ = problem(name, rare, wrong)
    X, y = X[:80], y[:80]
    groups = np.arange(80) % 16 if grouped else None
    true = (
        DataOOBValuer(n_estimators=1000, random_state=99)
        .fit(X, y, groups=groups)
        .values_
    )
    gaps, errors = [], []
    for seed in range(8):
        valuer = DataOOBValuer(n_estimators=60, random_state=seed).fit(
            X, y, groups=groups
        )
        gaps.append(np.abs(valuer.values_ - true))
        errors.append(valuer.values_error_)
    gaps, errors = np.array(gaps), np.array(errors)
    assert errors.min() > 0
    assert np.mean(gaps <= 2 * errors) >= 0.82, np.mean(gaps <= 2 * errors)
    assert 0.6 <= np.sqrt(np.mean(gaps**2) / np.mean(errors**2)) <= 1.2


@pytest.mark.parametrize(("rare", "wrong"), [(None, 0.0), (None, 0.1), (0.1, 0.0)])
@pytest.mark.parametrize("name", ["iris", "cancer", "digits"])
def test_truncation_of_knn(name, rare, wrong):
    """A bound: no value is farther from the exact one."""
    X, y, X_val, y_val = problem(name, rare, wrong)
    for groups in (None, y, np.arange(len(y)) % 10):
        options = {"X_val": X_val, "y_val": y_val, "groups": groups}
        for k, semivalue in ((5, "shapley"), (5, "banzhaf"), (1, (4, 1)), (5, (1, 4))):
            for how in (
                {"max_rank": 5},
                {"max_rank": 20},
                {"max_rank": "auto", "tol": 0.05},
            ):
                valuer = KNNShapleyValuer(k, semivalue=semivalue).fit(X, y, **options)
                exact = valuer.values_
                valuer.set_params(**how).fit(X, y, **options)
                gap = np.abs(valuer.values_ - exact).max()
                assert gap <= valuer.truncation_error_ + 1e-12, (k, semivalue, how)
                assert valuer.truncation_error_ <= how.get("tol", np.inf)


# Of few points, t intervals of skewed means have less than their level.
POINTS = {60: 0.82, 400: 0.88}


@pytest.mark.parametrize(
    ("name", "rare", "wrong"),
    [("iris", None, 0.1), ("cancer", 0.1, 0.0), ("digits", None, 0.0)],
)
@pytest.mark.parametrize(
    "valuer", [KNNShapleyValuer(), TKNNShapleyValuer()], ids=["knn", "tknn"]
)
def test_sampling_of_validation_points(valuer, name, rare, wrong):
    """The points are drawn from some, whose values are the true ones; without ball, no
    error."""
    X, y, X_val, y_val = problem(name, rare, wrong)
    X, y = X[:150], y[:150]
    if isinstance(valuer, TKNNShapleyValuer):
        valuer = TKNNShapleyValuer(suggest_radius(X_val, y_val))
    for groups in (None, y, np.arange(len(y)) % 10):
        true = valuer.fit(X, y, X_val=X_val, y_val=y_val, groups=groups).values_
        for n_points, least in POINTS.items():
            within = []
            for seed in range(40):
                drawn = np.random.default_rng(seed).integers(len(y_val), size=n_points)
                points = {
                    "X_val": X_val[drawn],
                    "y_val": y_val[drawn],
                    "groups": groups,
                }
                valuer.fit(X, y, **points)
                gaps, errors = np.abs(valuer.values_ - true), valuer.validation_error_
                within.append(np.mean(gaps[errors > 0] <= 2 * errors[errors > 0]))
            assert np.mean(within) >= least, (n_points, groups is None, np.mean(within))


# Least fraction within two errors. Private rows are taken to be like the public points:
# if their labels are wrong and those of the points are not, the prediction from the
# points is too high, and no released number says so. With release="all" that is the
# exception which the class states.
SHRUNK = {("all", 0.0): 0.88, ("publish", 0.0): 0.88, ("publish", 0.1): 0.75}


@pytest.mark.parametrize(("release", "wrong"), SHRUNK)
@pytest.mark.parametrize("n", [40, 200])
def test_private_layers(n, release, wrong):
    X, y, X_val, y_val = problem("cancer", None, wrong)
    options, within = {"X_val": X_val, "y_val": y_val}, []
    exact = LayeredShapleyValuer(
        l2=1.0, n_layers=3, max_evaluations=40_000, random_state=0
    )
    true = exact.fit(X[:n], y[:n], **options).values_
    for epsilon in (1.0, 8.0):
        for seed in range(3):
            valuer = LayeredShapleyValuer(
                l2=1.0, n_layers=3, epsilon=epsilon, release=release, random_state=seed,
                noise_random_state=seed,
            ).fit(X[:n], y[:n], **options)  # fmt: skip
            within.append(
                np.mean(np.abs(valuer.values_ - true) <= 2 * valuer.values_error_)
            )
    assert np.mean(within) >= SHRUNK[release, wrong], within


# Values by derivatives, and of parties ------------------------------------------------


def rates(values, errors, exact=None):
    """Fraction within two errors, and stated over true error; of fits (R, n).

    Without exact values, the mean of the fits is the reference.
    """
    values, errors = np.array(values), np.array(errors)
    gaps = values - (values.mean(axis=0) if exact is None else exact)
    if exact is None:
        gaps *= np.sqrt(len(values) / (len(values) - 1))
    within = np.mean(np.abs(gaps) <= 2 * errors)
    return within, np.sqrt(np.mean(errors**2) / np.mean(gaps**2))


RUNS = {"n_runs": 8, "n_epochs": 3, "batch_size": 16}
STEPS = {"learning_rate": 0.1, "n_permutations": 20}
NOISY = {"n_permutations": 20, "epsilon": 1.0}  # with the rate that "auto" takes
ROUNDS = {"learning_rate": 0.3, "n_rounds": 10, "n_permutations": 4}
# Class and parameters, and the allowed ranges of the fraction of values within two
# errors, and of stated over true error. Errors of eight runs have seven degrees of
# freedom: .914 are expected. Stated errors of rounds are too large by about a fifth.
USUAL, FEW_RUNS, ROUNDED = (
    [(0.88, 0.99), (0.8, 1.25)],
    [(0.85, 0.98), (0.8, 1.4)],
    [(0.88, 1.0), (0.85, 1.4)],
)
COMPUTED = {
    "unrolled": (UnrolledValuer, RUNS, *FEW_RUNS),
    "unrolled, AdamW": (UnrolledValuer, RUNS | {"optimizer": "adamw"}, *FEW_RUNS),
    "gradients": (GradientSemivalueValuer, STEPS, *USUAL),
    "gradients, Banzhaf": (
        GradientSemivalueValuer, STEPS | {"semivalue": "banzhaf", "n_permutations": 100}, *USUAL),
    "gradients, Beta": (
        GradientSemivalueValuer, STEPS | {"semivalue": (4, 1), "n_permutations": 100}, *USUAL),
    "gradients, accuracy": (GradientSemivalueValuer, STEPS | {"utility": "accuracy"}, *USUAL),
    "gradients, private": (GradientSemivalueValuer, NOISY, *USUAL),
    "gradients, epsilon 8": (GradientSemivalueValuer, NOISY | {"epsilon": 8.0}, *USUAL),
    "gradients, noise not averaged": (GradientSemivalueValuer, NOISY | {"noise": "iid"}, *USUAL),
    "gradients, examples": (
        GradientSemivalueValuer, NOISY | {"unit": "example", "trust": "server"}, *USUAL),
    "federated": (FederatedSemivalueValuer, ROUNDS, *ROUNDED),
    "federated, Banzhaf": (FederatedSemivalueValuer, ROUNDS | {"semivalue": "banzhaf"}, *ROUNDED),
    "federated, private": (
        FederatedSemivalueValuer, ROUNDS | {"epsilon": 1.0, "noise_random_state": 0}, *ROUNDED),
}  # fmt: skip
# Name of the set, fraction of the rare label, of wrong labels, number of rows.
ROWS = [
    ("cancer", None, 0.0, 40), ("cancer", None, 0.1, 200), ("cancer", 0.1, 0.0, 200),
    ("iris", None, 0.1, 90), ("digits", None, 0.0, 200),
]  # fmt: skip


def seeded_fits(kind, case, players):
    """Values and errors of fits that differ in their seeds alone."""
    cls, options, *_ = COMPUTED[kind]
    *how, n = case
    X, y, X_val, y_val = problem(*how)
    X, y, values, errors = X[:n], y[:n], [], []
    groups = {"rows": None, "classes": y, "twelve": np.arange(n) % 12}[players]
    valuer, redrawn = (
        cls(**options),
        "epsilon" in options and "noise_random_state" not in options,
    )
    for seed in range(24 if players == "rows" else 100):
        valuer.set_params(random_state=seed)
        if redrawn:
            valuer.set_params(noise_random_state=seed)
        valuer.fit(X, y, groups=groups, X_val=X_val, y_val=y_val)
        if hasattr(valuer, "learning_rate_"):
            valuer.set_params(learning_rate=valuer.learning_rate_)
        values.append(valuer.values_)
        errors.append(valuer.values_error_)
    return np.array(values), np.array(errors)


@pytest.mark.parametrize("players", ["rows", "classes", "twelve"])
@pytest.mark.parametrize("case", ROWS, ids=str)
@pytest.mark.parametrize("kind", COMPUTED)
def test_errors_of_computation(kind, case, players):
    values, errors = seeded_fits(kind, case, players)
    if kind.startswith("federated") and players == "classes" and case[0] != "digits":
        assert not errors.any()  # all coalitions are evaluated
        np.testing.assert_allclose(
            values, np.tile(values[0], (len(values), 1)), rtol=1e-9
        )
        return
    *_, within, ratio = COMPUTED[kind]
    if (kind, players) == ("gradients, examples", "classes"):  # as the class says
        within, ratio = (0.8, 0.99), (0.65, 1.25)
    found = rates(values, errors)
    assert within[0] <= found[0] <= within[1], found
    assert ratio[0] <= found[1] <= ratio[1], found


def alike(X, y, X_val, y_val):
    """Scores of rows at points: similar rows of the same label are worth most."""
    return np.tanh(X_val @ X.T / X.shape[1]) * np.where(y_val[:, None] == y, 1.0, -1.0)


RUN = {"standardize": False, "learning_rate": 0.3, "random_state": 0}
OVER_POINTS = {
    "in-run": (InRunShapleyValuer, RUN),
    "in-run, second order": (InRunShapleyValuer, RUN | {"order": 2}),
    "influence": (InfluenceValuer, {}),
    "influence, accuracy": (InfluenceValuer, {"utility": "accuracy"}),
    "influence, second order": (InfluenceValuer, {"order": 2}),
    "scores": (ScoresValuer, {"scores": alike}),
}
# Name of the set, fraction of the rare label, of wrong labels, number of rows and of
# points.
WITH_POINTS = [
    ("cancer", None, 0.0, 40, 50), ("cancer", None, 0.1, 150, 200), ("cancer", 0.1, 0.0, 150, 100),
    ("iris", None, 0.1, 40, 50), ("digits", None, 0.0, 150, 100),
]  # fmt: skip


@pytest.mark.parametrize("players", ["rows", "classes", "twelve"])
@pytest.mark.parametrize("case", WITH_POINTS, ids=str)
@pytest.mark.parametrize("kind", OVER_POINTS)
def test_errors_over_points(kind, case, players):
    """Of points drawn from many, beside the values at all of them."""
    (cls, options), (*how, n, n_points) = OVER_POINTS[kind], case
    X, y, _, _ = problem(*how)
    X, y, pool = X[:n], y[:n], (X[n:], y[n:])
    groups = {"rows": None, "classes": y, "twelve": np.arange(n) % 12}[players]
    valuer, rng, values, errors = cls(**options), np.random.default_rng(0), [], []
    for _ in range(40 if players == "rows" else 100):
        drawn = rng.integers(len(pool[0]), size=n_points)
        valuer.fit(X, y, groups=groups, X_val=pool[0][drawn], y_val=pool[1][drawn])
        values.append(valuer.values_)
        errors.append(valuer.validation_error_)
    exact = valuer.fit(X, y, groups=groups, X_val=pool[0], y_val=pool[1]).values_
    within, ratio = rates(values, errors, exact)
    # With few points, those of large loss are drawn or not.
    assert (0.8 if n_points == 50 else 0.85) <= within <= 1.0, within
    assert 0.8 <= ratio <= 1.4, ratio


# Rows of each party, epsilon of their releases, and the parties whose targets are
# wrong.
PARTIES = {
    "three": ((100, 200, 400), None, ()), "private": ((100, 200, 400), 0.2, ()),
    "one wrong": ((100, 200, 400), 0.2, (1,)), "sizes differ": ((5, 50, 800), 1.0, ()),
    "five small": ((10,) * 5, 1.0, ()),
}  # fmt: skip


def releases_of(case):
    """Releases of parties, and a pool of points."""
    counts, epsilon, wrong = PARTIES[case]
    *parties, pool = simulate(3, (*counts, 2000))[1]
    parties = [(X, -y if i in wrong else y) for i, (X, y) in enumerate(parties)]
    if epsilon is None:
        return [GramRelease(None).fit(*rows).release_ for rows in parties], pool
    return release_all(parties, [epsilon] * len(parties)), pool


# The computation is over particles; errors are of a few groups of them.
@pytest.mark.parametrize("case", PARTIES)
@pytest.mark.parametrize("kind", [BayesianSurpriseScorer, PredictiveValueScorer])
def test_errors_of_party_scores(kind, case):
    """Values, coalitions and the grand coalition, beside those of many particles."""
    releases, (X_val, y_val) = releases_of(case)
    points = (
        {"X_val": X_val[:200], "y_val": y_val[:200]}
        if kind is PredictiveValueScorer
        else {}
    )
    scorer = kind(linear_model())
    fits = [
        clone(scorer).set_params(random_state=i).fit(releases, **points)
        for i in range(24)
    ]
    many = (
        clone(scorer)
        .set_params(random_state=99, n_particles=2000)
        .fit(releases, **points)
    )
    for name in ("values", "coalition_values", "grand_value"):
        first = int(
            name == "coalition_values"
        )  # without the empty coalition, whose value is 0
        *values, exact = (
            np.ravel(getattr(fit, name + "_"))[first:] for fit in (*fits, many)
        )
        *errors, rest = (
            np.ravel(getattr(fit, name + "_error_"))[first:] for fit in (*fits, many)
        )
        within, ratio = rates(values, errors)
        assert 0.78 <= within <= 1.0, (name, within)
        assert 0.7 <= ratio <= 1.4, (name, ratio)
        gap = np.mean(values, axis=0) - exact
        assert (
            np.abs(gap)
            <= 4 * np.sqrt(np.mean(np.square(errors), axis=0) / 24 + rest**2)
        ).all()


@pytest.mark.parametrize("case", PARTIES)
def test_errors_of_party_scores_over_points(case):
    releases, (X_val, y_val) = releases_of(case)
    scorer = PredictiveValueScorer(linear_model(), random_state=0)
    rng, fits = np.random.default_rng(0), []
    for _ in range(40):
        drawn = rng.integers(len(X_val), size=60)
        fits.append(clone(scorer).fit(releases, X_val=X_val[drawn], y_val=y_val[drawn]))
    exact = scorer.fit(releases, X_val=X_val, y_val=y_val).values_
    values, errors = (
        [getattr(fit, n) for fit in fits] for n in ("values_", "validation_error_")
    )
    within, ratio = rates(values, errors, exact)
    assert 0.85 <= within <= 1.0, within
    assert 0.75 <= ratio <= 1.4, ratio
