"""Every public name that takes privacy parameters is in the tables of these tests."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import skvalue
from tests.privacy.one_row import FITS
from tests.privacy.test_private_messages import FITS as MESSAGES

API = Path(__file__).parents[2] / "doc" / "api.rst"
WORDS = {"epsilon", "renyi_epsilon", "noise_multiplier", "ledger", "noise_random_state"}

# Mechanisms by name -> the first words of their cases in `FITS` (or the test that
# compares their statistics), and the name of their messages.
MECHANISMS = {
    "TKNNShapleyValuer": "counts in balls",
    "InRunShapleyValuer": "in-run",
    "LayeredShapleyValuer": "layered",
    "FederatedSemivalueValuer": "federated",
    "GradientSemivalueValuer": "test_all_steps_of_a_gradient_fit",
    "GramRelease": "Gram matrix",
    "LogisticRelease": "sums of classes",
    "MeanRelease": "mean",
    "SellerRelease": "summary",
    "count_improbable_labels": "improbable labels",
}
# Names that release nothing of private rows, and what they do instead.
OTHERS = {
    "PriArTaScorer": "reads summaries; epsilon simulates sellers on the buyer's rows",
    "MembershipAttack": "what an attack measured",
    "NoisyStatistic": "a release",
    "Summary": "a release",
    "FederatedRound": "what a server asks, without data of parties",
    "FederatedUpdate": "a release",
    "PrivacyReport": "what a release protects",
    "Ledger": "the budget",
    "OpaqueEvent": "a fact",
    "Release": "the one place that adds noise, which all mechanisms open",
    "add_noise": "noise",
    "draw_noise": "noise",
    "noise_source": "noise",
    "poisson_sample": "noise",
    "calibrate": "accounting",
    "calibrate_counts": "accounting",
    "calibrate_gaussian": "accounting",
    "calibrate_laplace": "accounting",
    "get_delta": "accounting",
    "delta_from_mu": "accounting",
    "mu_from_epsilon": "accounting",
    "detection_ceiling": "accounting",
    "make_report": "words",
    "plan_release": "accounting",
}
# Methods of mechanisms that take data, and what they are.
METHODS = {
    "fit": "compared",
    "fit_transform": "fit, for the curator",
    "transform": "values of each row by itself, from what fit released",
    "score_samples": "values of each row by itself, from what fit released",
    "add_validation": "refused after a private fit",
    "estimate_cost": "seconds, from a few coalitions, for the curator",
    "path": "compared",
    "release": "compared",
    "add_round": "compared",
    "answer_round": "compared",
}
DATA = {"X", "update", "updates"}


def public_modules():
    """The modules of the API page, and that of all estimators."""
    names = re.findall(r"^   (skvalue[\w.]*)$", API.read_text(encoding="utf-8"), re.M)
    for name in names:
        try:
            module = importlib.import_module(name)
        except ImportError:  # the name of a class or function
            continue
        if inspect.ismodule(module):
            yield module


def public_callables():
    """All that is public and is called, by name."""
    callables = {}
    for module in [skvalue, *public_modules()]:
        names = getattr(module, "__all__", None) or dir(module)
        for name in names:
            value = getattr(module, name)
            is_ours = getattr(value, "__module__", "").startswith("skvalue")
            if not name.startswith("_") and callable(value) and is_ours:
                callables[name] = value
    return callables


def parameters_of(function):
    try:
        return set(inspect.signature(function).parameters)
    except ValueError:  # of an exception
        return set()


def test_all_names_with_privacy_parameters_are_in_a_table():
    private = {
        name
        for name, value in public_callables().items()
        if WORDS & parameters_of(value)
    }
    assert len(private) > 20
    assert private == MECHANISMS.keys() | OTHERS.keys()


def test_all_private_valuers_of_the_top_level_are_mechanisms():
    private = {
        name
        for name in skvalue.__all__
        if inspect.isclass(value := getattr(skvalue, name))
        and "ledger" in parameters_of(value)
    }
    assert private <= MECHANISMS.keys()


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_statistics_of_a_mechanism_are_compared(name):
    words = MECHANISMS[name]
    if words.startswith("test_"):
        text = Path(__file__).with_name("test_one_row_moves_its_own.py").read_text()
        assert f"def {words}" in text
        return
    assert any(case.startswith(words) for case in FITS)


@pytest.mark.parametrize("name", MECHANISMS)
def test_all_methods_that_take_data_are_in_the_table(name):
    mechanism = public_callables()[name]
    if not inspect.isclass(mechanism):
        return
    methods = {
        method
        for method, function in inspect.getmembers(mechanism, callable)
        if not method.startswith("_") and DATA & parameters_of(function)
    }
    assert methods <= METHODS.keys()


def test_the_messages_of_all_mechanisms_are_read():
    assert {name for name, _ in MESSAGES.values()} == MECHANISMS.keys()
