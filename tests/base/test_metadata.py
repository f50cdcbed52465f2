"""Validation points and groups that scikit-learn's meta-estimators pass on."""

import numpy as np
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skvalue import KNNShapleyValuer


def test_grid_search_slices_a_validation_set_as_long_as_x(rng):
    # scikit-learn's rule for metadata; the user guide warns of it.
    X = rng.normal(size=(40, 2))
    y = np.arange(40) % 2
    lengths = []

    class Spy(KNNShapleyValuer):
        def fit(self, X, y, *, X_val=None, y_val=None):
            lengths.append(len(X_val))
            return super().fit(X, y, X_val=X_val, y_val=y_val)

        def score(self, X, y):
            return self.utility_

    for n_val, expected in [(40, 20), (30, 30)]:
        lengths.clear()
        search = GridSearchCV(Spy(), {"n_neighbors": [1, 2]}, cv=2, refit=False)
        with config_context(enable_metadata_routing=True):
            search.estimator.set_fit_request(X_val=True, y_val=True)
            search.fit(X, y, X_val=X[:n_val], y_val=y[:n_val])
        assert lengths == [expected] * 4


def test_groups_pass_through_a_pipeline(rng):
    X = rng.normal(size=(40, 2))
    y = np.arange(40) % 2
    groups = np.arange(40) % 5
    with config_context(enable_metadata_routing=True):
        step = KNNShapleyValuer(cv=GroupKFold(5)).set_fit_request(groups=True)
        pipeline = make_pipeline(StandardScaler(), step)
        values = pipeline.fit_transform(X, y, groups=groups)
    assert len(np.unique(values)) == 5
