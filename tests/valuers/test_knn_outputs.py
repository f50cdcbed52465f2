"""KNN-Shapley of several targets at once: means over the columns of y."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.base import clone

from skvalue import KNNShapleyValuer, TKNNShapleyValuer
from skvalue.exceptions import ManyClassesWarning

KINDS = ["multilabel-indicator", "multiclass-multioutput", "continuous-multioutput", "strings"]


def targets(rng, kind, n):
    if kind == "multilabel-indicator":
        return rng.integers(0, 2, (n, 3))
    if kind == "continuous-multioutput":
        return 5 + rng.normal(size=(n, 2))
    y = np.column_stack([rng.integers(0, 3, n), rng.integers(5, 10, n)])
    return y if kind == "multiclass-multioutput" else np.array(list("abcdefghijk"))[y]


def game(rng, kind):
    X, X_val = rng.integers(0, 6, (45, 2)) / 2.0, rng.integers(0, 6, (13, 2)) / 2.0
    y, y_val = targets(rng, kind, 45), targets(rng, kind, 13)
    if kind != "continuous-multioutput":
        y[:30:6] = y_val[0]
    return X, y, X_val, y_val


@pytest.mark.parametrize("cv", [None, "leave-one-out", 4], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_values_are_means_over_outputs(rng, kind, cv):
    X, y, X_val, y_val = game(rng, kind)
    base = KNNShapleyValuer(3, cv=cv or "leave-one-out")
    each = []
    for j in range(y.shape[1]):
        points = {} if cv else dict(X_val=X_val, y_val=y_val[:, j])
        # Several columns are not stratified.
        folds = np.array_split(np.arange(45), 4)
        split = [(np.setdiff1d(np.arange(45), fold), fold) for fold in folds]
        one = clone(base).set_params(cv=split) if cv == 4 else clone(base)
        each.append(one.fit(X, y[:, j], **points))
    points = {} if cv else dict(X_val=X_val, y_val=y_val)
    valuer = base.fit(X, y, **points)
    np.testing.assert_allclose(valuer.values_, np.mean([v.values_ for v in each], 0), atol=1e-14)
    assert valuer.utility_ == pytest.approx(np.mean([v.utility_ for v in each]))
    assert valuer.values_.sum() == pytest.approx(valuer.utility_ - valuer.empty_utility_)
    new = X[:6] + 0.2
    np.testing.assert_allclose(
        valuer.score_samples(new, y[:6]),
        np.mean([v.score_samples(new, y[:6, j]) for j, v in enumerate(each)], 0),
        atol=1e-13,
    )
    np.testing.assert_allclose(
        valuer.transform(new), np.mean([v.transform(new) for v in each], 0), atol=1e-13
    )
    np.testing.assert_allclose(
        valuer.contributions(3).contributions,
        np.mean([v.contributions(3).contributions for v in each], 0),
        atol=1e-14,
    )
    if kind == "continuous-multioutput":
        assert not hasattr(valuer, "classes_")
    else:
        for known, one in zip(valuer.classes_, each):
            np.testing.assert_array_equal(known, one.classes_)


@pytest.mark.parametrize("kind", KINDS)
def test_changes_and_errors_over_points(rng, kind):
    X, y, X_val, y_val = game(rng, kind)
    valuer = KNNShapleyValuer(3).fit(X, y, X_val=X_val, y_val=y_val)
    part = clone(valuer).fit(X, y, X_val=X_val[:8], y_val=y_val[:8])
    part.add_validation(X_val[8:], y_val[8:])
    np.testing.assert_allclose(part.values_, valuer.values_, atol=1e-14)
    at_points = [
        np.mean(
            [
                KNNShapleyValuer(3).fit(X, y[:, j], X_val=X_val[[v]], y_val=y_val[[v], j]).values_
                for j in range(y.shape[1])
            ],
            axis=0,
        )
        for v in range(13)
    ]
    expected = np.std(at_points, axis=0, ddof=1) / np.sqrt(13)
    if kind != "continuous-multioutput":  # whose prior is the mean over all points
        np.testing.assert_allclose(valuer.validation_error_, expected, atol=1e-14)
    groups = np.arange(45) % 5
    by_group = clone(valuer).fit(X, y, X_val=X_val, y_val=y_val, groups=groups)
    np.testing.assert_allclose(by_group.values_, np.bincount(groups, weights=valuer.values_))
    assert by_group.validation_error_.shape == (5,)


def test_one_label_may_be_constant(rng):
    X, y, X_val, y_val = game(rng, "multilabel-indicator")
    y[:, 1] = 0  # no row has the label
    valuer = KNNShapleyValuer(3).fit(X, y, X_val=X_val, y_val=y_val)
    assert valuer.empty_utility_ == 0.5
    assert [known.tolist() for known in valuer.classes_] == [[0, 1]] * 3


def test_with_distances_and_semivalues(rng):
    X, y, X_val, y_val = game(rng, "multilabel-indicator")
    valuer = KNNShapleyValuer(3, semivalue="banzhaf").fit(X, y, X_val=X_val, y_val=y_val)
    known = clone(valuer).set_params(metric="precomputed")
    known.fit(cdist(X, X), y, X_val=cdist(X_val, X), y_val=y_val)
    np.testing.assert_allclose(known.values_, valuer.values_, atol=1e-14)
    sparse = clone(valuer).fit(csr_array(X), y, X_val=csr_array(X_val), y_val=y_val)
    np.testing.assert_allclose(sparse.values_, valuer.values_, atol=1e-14)


def test_messages(rng):
    X, y, X_val, y_val = game(rng, "multilabel-indicator")
    valuer = KNNShapleyValuer(3)
    for keywords, message in [
        (dict(X_val=X_val, y_val=y_val[:, :2]), r"y_val must have 3 columns, as y. Got \(13, 2\)"),
        (dict(X_val=X_val, y_val=y_val[:, 0]), r"y_val must have 3 columns, as y. Got \(13,\)"),
        (dict(X_val=X_val, y_val=y_val + 1), "y_val must hold only labels that y has. Got .* 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            valuer.fit(X, y, **keywords)
    with pytest.raises(ValueError, match="class_weight must be None for targets of several col"):
        KNNShapleyValuer(class_weight="balanced").fit(X, y)
    with pytest.raises(ValueError, match="must hold classes when task='classification'"):
        KNNShapleyValuer(task="classification").fit(X, y + 0.5)
    with pytest.raises(ValueError, match="should be a 1d array|must be one column"):
        TKNNShapleyValuer().fit(X, y)
    with pytest.raises(ValueError, match="y must be columns of classes or numbers. Got other obj"):
        valuer.fit(X, np.array([[1, "a"], [2, "b"], [1, "a"]] * 15, dtype=object))
    with pytest.raises(TypeError, match="Sparse data was passed for y"):
        valuer.fit(X, csr_array(y))
    valuer.fit(X, y)
    with pytest.raises(ValueError, match=r"y must have 3 columns, as in fit. Got shape \(45,\)"):
        valuer.score_samples(X, y[:, 0])
    many = np.column_stack([np.arange(45) % 2, 2 * np.arange(45) % 77])
    with pytest.warns(ManyClassesWarning, match="y has 45 different whole numbers"):
        valuer.fit(X, many)
