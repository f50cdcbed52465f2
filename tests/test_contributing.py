"""The page on how to add a valuer: what it adds passes the common tests."""

import re
from pathlib import Path

import numpy as np
import pytest
import test_common
from sklearn.utils.estimator_checks import parametrize_with_checks
from toy_valuer import VoteValuer

from skvalue.base import Run
from skvalue.privacy import Release

ROOT = Path(__file__).resolve().parents[1]
TOY = ROOT / "tests" / "toy_valuer.py"


def page():
    """The lines of the section, with those of the files that it includes."""
    text = (ROOT / "doc" / "contributing.rst").read_text(encoding="utf-8")
    section = text.split("How to add a valuer\n---")[1].split("House rules\n---")[0]
    for line in section.splitlines():
        if line.startswith(".. literalinclude:: "):
            included = (ROOT / "doc" / line.split()[-1]).read_text(encoding="utf-8")
            yield from included.splitlines()
        yield line


def filled(lines):
    return [line for line in lines if line.strip()]


def test_the_page_shows_the_toy_and_every_name_of_a_run():
    lines = list(page())
    toy = TOY.read_text(encoding="utf-8").splitlines()
    assert set(filled(toy)) <= set(lines)
    names = set(re.findall(r"``.*?(?:run|release)\.(\w+)\(", "\n".join(lines)))
    assert names == {"map", "fits", "steps", "evaluations", "of"}
    assert all(hasattr(Run, name) or hasattr(Release, name) for name in names)


@parametrize_with_checks([VoteValuer()])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn(estimator, check):
    check(estimator)


data = test_common.data


def test_common_tests(data):
    for test in (
        test_common.test_values_and_fit_transform_agree,
        test_common.test_pickle_keeps_everything,
        test_common.test_clone_and_refit,
        test_common.test_validation_set_through_a_pipeline,
    ):
        test(VoteValuer, data)
    test_common.test_every_parameter_is_documented_and_constrained(VoteValuer)


@pytest.mark.parametrize("groups", [None, np.arange(10) % 5], ids=["rows", "groups"])
def test_leave_one_out_by_name(groups, data):
    test_common.test_leave_one_out_by_name(VoteValuer, groups, data)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_fit_that_ends_without_values_changes_nothing(error, data):
    test_common.test_a_fit_that_ends_without_values_changes_nothing(
        VoteValuer, error, data
    )


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_data_frames(container, data):
    test_common.test_data_frames(VoteValuer, data, container)


@pytest.mark.parametrize("cv", ["leave-one-out", 5])
def test_efficiency(cv, data):
    valuer = VoteValuer(cv).fit(*data)
    assert valuer.values_.sum() == pytest.approx(
        valuer.utility_ - valuer.empty_utility_
    )
