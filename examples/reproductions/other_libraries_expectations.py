"""
What users of scikit-learn expect, tried on every library
=========================================================

other_libraries_worker.py calls these in the library's own environment. An answer is
"yes", a few words on what came instead, or an exception, of which the caller keeps the
first line. "yes" for data frames, strings and sparse rows means the same values as for
plain arrays of numbers.

Where a library has no estimator to hand over, the object that holds its values is
tried; for cleanlab, whose values come from a function, its classifier `CleanLearning`
is.
"""

import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import other_libraries_worker as calls

N = 60
N_VAL = 12
COLUMNS = ["height", "weight", "age"]
NAMES = np.array(["ant", "bee", "cat"])


def arrays():
    rng = np.random.default_rng(0)
    y = np.arange(N) % 3
    y_val = np.arange(N_VAL) % 3
    X = rng.normal(size=(N, 3))
    X_val = rng.normal(size=(N_VAL, 3))
    X, X_val = (
        np.where(a + b[:, None] > 0.5, a + b[:, None], 0)
        for a, b in [(X, y), (X_val, y_val)]
    )
    return SimpleNamespace(X=X, y=y, X_val=X_val, y_val=y_val)


def same(values, expected):
    if np.shape(values) != np.shape(expected):
        return f"values of shape {np.shape(values)}"
    difference = np.abs(np.asarray(values) - expected).max()
    return "yes" if difference < 1e-6 else f"values differ by {difference:.2g}"


def frames(method):
    import pandas

    p = arrays()
    spelt = SimpleNamespace(
        X=pandas.DataFrame(p.X, columns=COLUMNS),
        y=pandas.Series(NAMES[p.y], name="animal"),
        X_val=pandas.DataFrame(p.X_val, columns=COLUMNS),
        y_val=pandas.Series(NAMES[p.y_val]),
    )
    return same(method(spelt, 3)(), method(p, 3)())


def sparse(method):
    from scipy.sparse import csr_matrix

    p = arrays()
    thin = SimpleNamespace(
        X=csr_matrix(p.X), y=p.y, X_val=csr_matrix(p.X_val), y_val=p.y_val
    )
    return same(method(thin, 3)(), method(p, 3)())


def cloned(make):
    from sklearn.base import clone

    clone(make(arrays()))
    return "yes"


def piped(make):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    p = arrays()
    pipe = make_pipeline(StandardScaler(), make(p)).fit(p.X, p.y)
    if hasattr(pipe, "predict"):
        pipe.predict(p.X_val)
    return "yes"


def searched(make, grid):
    from sklearn.model_selection import GridSearchCV

    p = arrays()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = GridSearchCV(make(p), grid, error_score="raise").fit(p.X, p.y)
    return "yes" if np.isfinite(search.best_score_) else f"score {search.best_score_}"


def no_jobs():
    return "no n_jobs"


def estimator(make, grid, method, jobs=no_jobs, filtering=None):
    return {
        "clone": partial(cloned, make),
        "Pipeline": partial(piped, make),
        "GridSearchCV": partial(searched, filtering or make, grid),
        "pandas, strings": partial(frames, method),
        "sparse": partial(sparse, method),
        "n_jobs": jobs,
    }


def skvalue_valuer(p):
    from skvalue import KNNShapleyValuer

    return KNNShapleyValuer(3)


def skvalue_filter(p):
    from sklearn.linear_model import LogisticRegression

    from skvalue import KNNShapleyValuer, ValueFilteredClassifier

    return ValueFilteredClassifier(LogisticRegression(), KNNShapleyValuer(3))


def skvalue_jobs():
    from sklearn.linear_model import LogisticRegression

    from skvalue import DataShapleyValuer

    p = arrays()
    values = [
        DataShapleyValuer(
            LogisticRegression(), max_evaluations=1200, random_state=0, n_jobs=n_jobs
        )
        .fit(p.X, p.y, X_val=p.X_val, y_val=p.y_val)
        .values_
        for n_jobs in (1, 2)
    ]
    return same(*values)


def pydvl_valuation(p):
    from pydvl.valuation import Dataset, KNNShapleyValuation
    from sklearn.neighbors import KNeighborsClassifier

    test = Dataset(p.X_val, p.y_val)
    return KNNShapleyValuation(KNeighborsClassifier(3), test, progress=False)


def pydvl_jobs():
    from joblib import parallel_config
    from pydvl.valuation import Dataset, ShapleyValuation
    from pydvl.valuation.samplers import PermutationSampler
    from pydvl.valuation.scorers import SupervisedScorer
    from pydvl.valuation.stopping import MinUpdates
    from pydvl.valuation.utility import ModelUtility
    from sklearn.linear_model import LogisticRegression

    p = arrays()
    train = Dataset(p.X, p.y)
    test = Dataset(p.X_val, p.y_val)

    def values(n_jobs):
        scorer = SupervisedScorer("accuracy", test, default=0.0)
        utility = ModelUtility(LogisticRegression(), scorer)
        valuation = ShapleyValuation(
            utility, PermutationSampler(seed=0), is_done=MinUpdates(5), progress=False
        )
        with parallel_config(n_jobs=n_jobs):
            return valuation.fit(train).result.values

    return same(values(1), values(2))


def opendataval_evaluator(p):
    from opendataval.dataval import KNNShapley

    return KNNShapley(k_neighbors=3)


def shapiq_explainer(p):
    from shapiq.explainer.nn import KNNExplainer
    from sklearn.neighbors import KNeighborsClassifier

    return KNNExplainer(KNeighborsClassifier(3).fit(p.X, p.y), class_index=0)


def shapiq_jobs():
    p = arrays()
    return same(calls.shapiq_knn(p, 3)(), calls.shapiq_knn(p, 3, n_jobs=2)())


def cleanlab_classifier(p):
    from cleanlab.classification import CleanLearning
    from sklearn.linear_model import LogisticRegression

    return CleanLearning(LogisticRegression())


def dattri_attributor(p):
    from dattri.algorithm.data_shapley import KNNShapleyAttributor

    return KNNShapleyAttributor(k_neighbors=3)


def datascope_importance(p):
    from datascope.importance import SklearnModelAccuracy
    from datascope.importance.shapley import ShapleyImportance
    from sklearn.neighbors import KNeighborsClassifier

    return ShapleyImportance(
        method="neighbor", utility=SklearnModelAccuracy(KNeighborsClassifier(1))
    )


def datascope_1nn(p, k):
    return calls.datascope_knn(p, 1)


K = {"k_neighbors": [1, 3]}
EXPECTATIONS = {
    "skvalue": estimator(
        skvalue_valuer,
        {"valuer__n_neighbors": [1, 3]},
        calls.skvalue_knn,
        skvalue_jobs,
        filtering=skvalue_filter,
    ),
    "pydvl": estimator(
        pydvl_valuation, {"progress": [False]}, calls.pydvl_knn, pydvl_jobs
    ),
    "opendataval": estimator(opendataval_evaluator, K, calls.opendataval_knn),
    "shapiq": estimator(
        shapiq_explainer, {"class_index": [0, 1]}, calls.shapiq_knn, shapiq_jobs
    ),
    "cleanlab": estimator(
        cleanlab_classifier, {"cv_n_folds": [3, 5]}, calls.cleanlab_by_each_other
    ),
    "dattri": estimator(dattri_attributor, K, calls.dattri_knn),
    "datascope": estimator(datascope_importance, {"nn_k": [1, 3]}, datascope_1nn),
}
