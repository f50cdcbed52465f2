"""scikit-learn's checks of every public estimator of rows."""

from collections import Counter

import pytest
from public_estimators import (
    LONG,
    NAMED,
    VALUERS,
    build_bare,
    build_quick,
    estimators,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from skvalue import DataOOBValuer, DataShapleyValuer, KNNShapleyValuer

# Sets of a few rows fail and are imprecise: tests of these warnings are with the
# valuers.
pytestmark = [
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.FailedCoalitionsWarning"),
    pytest.mark.filterwarnings("ignore::skvalue.exceptions.ImpreciseValuesWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]
# One of rows that are valued by the game and one of rows of fit alone, with points and
# without.
IN_PIPELINES = [KNNShapleyValuer, DataShapleyValuer, DataOOBValuer]


def in_two_tiers(estimators, is_slow, **options):
    """As `parametrize_with_checks`, with some of the checks in the slow tier.

    ``is_slow`` gets the class, the name of the check, and its number among those of the
    class.
    """
    mark = parametrize_with_checks(estimators, **options)
    numbers = Counter()
    cases = []
    for case in mark.args[1]:
        estimator, check = getattr(case, "values", case)
        cls = type(estimator[-1] if isinstance(estimator, Pipeline) else estimator)
        marks = [*getattr(case, "marks", ())]
        if is_slow(cls, check.func.__name__, numbers[cls]):
            marks.append(pytest.mark.slow)
        numbers[cls] += 1
        cases.append(pytest.param(estimator, check, marks=marks))
    return pytest.mark.parametrize(mark.args[0], cases, **mark.kwargs)


def is_repeated(cls, name, number):
    """Whether a check was run on another kind of matrix, or another class.

    Valuers have one `fit` in common, and take turns.
    """
    if "sparse_matrix" in name:
        return True
    if cls not in VALUERS or cls is KNNShapleyValuer:
        return False
    if "sparse" in name and cls in (DataOOBValuer, DataShapleyValuer, *LONG):
        return cls is not DataOOBValuer
    n_turns = 3 if cls in NAMED else 2
    return (VALUERS.index(cls) + number) % n_turns > 0


@in_two_tiers([build_quick(cls) for cls in estimators()], is_repeated)
def test_estimator(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([build_bare(cls) for cls in estimators()])
def test_bare_estimator(estimator, check):
    """Only required parameters, and so no seed and the budgets of users."""
    check(estimator)


def expected_failures(pipeline):
    """scikit-learn expects these checks of any Pipeline to fail."""
    reason = "Pipeline changes the `steps` parameter"
    checks = {
        "check_dont_overwrite_parameters": reason,
        "check_estimators_overwrite_params": reason,
    }
    if get_tags(pipeline[-1]).input_tags.allow_nan:
        reason = "Pipeline lacks the tag allow_nan even if all its steps have it"
        checks["check_estimators_nan_inf"] = reason
    return checks


@in_two_tiers(
    [make_pipeline(StandardScaler(), build_quick(cls)) for cls in IN_PIPELINES],
    is_slow=lambda cls, _, number: cls is not KNNShapleyValuer and number % 4 > 0,
    expected_failed_checks=expected_failures,
)
def test_estimator_in_a_pipeline(estimator, check):
    check(estimator)
