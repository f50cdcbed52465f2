"""KNN-Shapley with noise on every value: sensitivities, samples, refusals."""

import pickle
from itertools import product

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from skvalue import KNNShapleyValuer
from skvalue.privacy import Ledger, get_epsilon
from skvalue.valuers.knn_shapley._private import (
    joint_sensitivity,
    sampled_values,
    value_event,
    value_sensitivity,
)


def values_by_rank(match, k):
    n = len(match)
    steps = [0.0, 0.0] + [1 / (j * (j - 1)) for j in range(2, n + 1)]
    return np.array([
        match[r - 1] / max(r, k) - sum(match[j - 1] * steps[j] for j in range(max(r, k) + 1, n + 1))
        for r in range(1, n + 1)
    ])  # fmt: skip


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_no_row_changes_others_by_more_than_the_sensitivities(k):
    one = joint = 0.0
    for n in range(1, 8):
        for match in product((0, 1), repeat=n):
            before = values_by_rank(match, k)
            for place in range(n + 1):
                for new in (0, 1):
                    after = values_by_rank((*match[:place], new, *match[place:]), k)
                    change = np.delete(after, place) - before
                    one = max(one, np.abs(change).max())
                    joint = max(joint, np.linalg.norm(change))
    assert one == pytest.approx(value_sensitivity(k))
    assert 0.85 * joint_sensitivity(k) < joint <= joint_sensitivity(k)


def change_of_others(X, y, new, judges, monkeypatch):
    """L2 change of all values but the last, of a private fit without noise, when a row comes."""
    monkeypatch.setattr(
        "skvalue.valuers.knn_shapley._private.add_noise", lambda clean, *args, **options: clean
    )
    found = []
    for rows, labels in ((X, y), (np.vstack([X, new]).astype(X.dtype), np.append(y, 0))):
        valuer = KNNShapleyValuer(5, utility="original", metric="euclidean", epsilon=1.0)
        weights = np.eye(len(judges))[0]
        valuer.fit(rows, labels, X_val=judges, y_val=np.arange(len(judges)) % 2 == 0,
                   sample_weight_val=weights)  # fmt: skip
        found.append(valuer.values_[: len(X)])
    return np.linalg.norm(found[1] - found[0])


def test_a_row_does_not_move_others_by_rounding(rng, monkeypatch):
    # Alone, the rows are compared around their mean; with one far away, around the origin, where
    # the float32 product takes those of one number all over for the nearer ones.
    t = np.linspace(1, 2, 1001, dtype=np.float32)
    centres = np.repeat(t[:, None], 384, axis=1)
    moved = centres + np.eye(1, 384, dtype=np.float32) / 2
    wrong = (centres @ moved.T).diagonal() - (centres.astype(float) * moved).sum(axis=1)
    centre, far = centres[wrong.argmax()], moved[wrong.argmax()]
    step = rng.normal(size=384)
    near = centre + 0.498 * step / np.linalg.norm(step)
    X = np.vstack([np.tile(far, (5, 1)), np.tile(near, (5, 1))]).astype(np.float32)
    judges = np.vstack([centre, 50 + 3 * rng.normal(size=(511, 384))]).astype(np.float32)
    change = change_of_others(X, np.repeat([1, 0], 5), -9 * centre[None], judges, monkeypatch)
    assert change <= joint_sensitivity(5)


def test_a_row_does_not_tie_others(monkeypatch):
    # Were rows tied that rounding alone may part, one row between two runs of them could join them.
    # (Some rows are elsewhere, so that products are taken far from the others.)
    X = np.repeat([[1e3, 1.0], [1e3, 1 + 7.1e-15], [-1e3, 0.0]], [5, 5, 11], axis=0)
    judges, y = np.array([[1e3, 0.0], [9.0, 9.0]]), np.repeat([1, 0], [5, 16])
    change = change_of_others(X, y, [[1e3, 1 + 3.6e-15]], judges, monkeypatch)
    assert change <= joint_sensitivity(5)


def test_no_ceiling_where_a_row_shows_in_its_own_value():
    # With one owner's noise, a flipped label moves the row's own value by 1.6 deviations: the ROC
    # curve of that has an area of 0.87, when a ceiling of other owners' releases would be 0.65.
    X, judges = np.arange(30.0)[:, None], np.array([[-1.0], [99.0]])
    weights, own = np.array([1.0, 0.0]), {}
    for label in (0, 1):
        y = np.append(label, np.zeros(29, dtype=int))
        own[label] = [
            KNNShapleyValuer(5, utility="original", metric="euclidean", epsilon=1.0,
                             readers="alone")
            .fit(X, y, X_val=judges, y_val=[1, 0], sample_weight_val=weights)
            for _ in range(400)
        ]  # fmt: skip
    values = [fitted.values_for(0) for fitted in own[1] + own[0]]
    # 0.87 has a standard error of 0.013: six of them above 0.78, where no ceiling would be.
    assert roc_auc_score(np.repeat([1, 0], 400), values) > 0.78
    assert own[1][0].privacy_.detection_ceiling is None


def test_joint_sensitivity_is_its_sum():
    for k in (1, 4, 50, 1000, 1001, 3000):
        r = np.arange(k + 1.0, 1e6)
        total = 1 / (k * (k + 1) ** 2) + (1 / (r * (r + 1)) ** 2).sum()
        assert total <= joint_sensitivity(k) ** 2 <= 1.01 * total


def game(rng, n=40):
    X, X_val = rng.normal(size=(n, 3)), rng.normal(size=(12, 3))
    return X, rng.integers(0, 3, n), X_val, np.arange(12) % 3


def private(data, **parameters):
    X, y, X_val, y_val = data
    parameters = {"utility": "original", "epsilon": 1.0, **parameters}
    return KNNShapleyValuer(4, **parameters).fit(X, y, X_val=X_val, y_val=y_val)


def test_a_sample_of_everybody_gives_the_clear_values(rng):
    X, y, X_val, y_val = data = game(rng)
    clear = private(data, epsilon=None).values_
    weights = np.full(12, 1 / 12)
    every = sampled_values(X, y, X_val, y_val, weights, 4, "euclidean", 1.0)
    np.testing.assert_allclose(every, clear, atol=1e-12)
    few = sampled_values(X, y, X_val, y_val, weights, 4, "euclidean", 0.5)
    assert not np.allclose(few, clear)


def test_little_noise_gives_the_clear_values(rng):
    data = game(rng)
    noisy = private(data, epsilon=1e4, readers="alone").values_
    np.testing.assert_allclose(noisy, private(data, epsilon=None).values_, atol=0.01)


@pytest.mark.parametrize("relation", ["null", "add_remove", "replace"])
@pytest.mark.parametrize("readers", ["pooled", "alone"])
def test_events_state_the_sensitivity(relation, readers):
    everything, seen = value_event(1.0, 1e-5, 4, 100, relation, readers)
    steps = 2 if relation == "replace" else 1
    sensitivity = joint_sensitivity(4) if readers == "pooled" else value_sensitivity(4)
    assert seen.sensitivity == steps * sensitivity
    assert get_epsilon(seen, 1e-5) == pytest.approx(1.0)
    assert everything.scale == seen.scale
    assert everything.sensitivity == steps * joint_sensitivity(4)


def test_report_ledger_and_what_is_kept(rng):
    data = game(rng)
    X, y, X_val, y_val = data
    ledger = Ledger(None, "rows", epsilon=10.0, delta=1e-5)
    valuer = private(data, readers="alone", ledger=ledger)
    text = str(valuer.privacy_).replace("\n", " ")
    assert "every other owner who sees no value but its own" in text
    assert "owners of other rows who pool their values" in text
    assert ledger.spent > 1.5  # all values together cost more than one of them
    assert np.isnan(valuer.utility_)
    assert valuer.values_for(3) == valuer.values_[3]
    copy = pickle.loads(pickle.dumps(private(data)))
    assert not hasattr(copy, "values_")
    with pytest.raises(ValueError, match="are not there after a private fit of KNNShapleyValuer"):
        copy.score_samples(X)
    strange = np.where(np.arange(40) % 5 == 0, 77, y)
    assert np.isfinite(private((X, strange, X_val, y_val)).values_).all()


def test_refusals(rng):
    data = game(rng)
    with pytest.raises(ValueError, match="utility must be 'original', .* Got utility='soft'"):
        private(data, utility="soft")
    with pytest.raises(ValueError, match="task='regression'"):
        private(data, task="regression")
    with pytest.raises(ValueError, match="Got utility='original', task='auto', max_rank=10"):
        private(data, max_rank=10)
    with pytest.raises(ValueError, match="X_val and y_val must be passed with epsilon"):
        KNNShapleyValuer(utility="original", epsilon=1.0).fit(*data[:2])
    with pytest.raises(ValueError, match="'add_remove' or 'null' with sampling_rate"):
        private(data, sampling_rate=0.1, relation="replace")
    with pytest.raises(ValueError, match="The 'readers' parameter of KNNShapleyValuer must be"):
        private(data, readers="nobody")
