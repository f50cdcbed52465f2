"""Remedies for classes of unequal size, and rules of markets of rows."""

import pytest

from .scripts import of

NO_ADULT = "adult: no adult.npz in --data=None: left out"


@pytest.fixture
def measure(script):
    """Measures of a small data set with a fraction of wrong labels, by a seed."""

    def call(flipped, seed):
        return script.measure(
            "creditcard", None, flipped, seed, rules=(0.05, "negative"), n_train=1000
        )

    return call


@of("imbalance", pytest.mark.slow)
def test_remedies_cost_nothing_on_clean_labels(script, measure):
    results = [measure(0.0, seed) for seed in range(3)]
    means = script.print_table("creditcard", 0.0, results)
    assert means["KNN", 0.05][0] > 0.9
    assert means["KNN", 0.05][1] < -0.05
    costs = script.largest_costs({"creditcard": means})
    assert len(costs) == 7 * 3
    for (remedy, model), (cost, *where) in costs.items():
        if model == "LR" or remedy == "KNN, both":
            assert cost <= 0.01, (remedy, model, where)


@of("imbalance", pytest.mark.slow)
def test_balanced_values_find_wrong_labels_of_rare_classes(measure):
    _, areas = measure(0.05, 0)
    assert areas["KNN"][0] > 0.9
    assert min(areas["KNN, balanced"][1:]) > min(areas["KNN"][1:])


@of("imbalance", pytest.mark.slow)
def test_a_data_set_without_a_file_is_left_out(run):
    assert NO_ADULT in run("--sets adult --seeds 1")


@of("markets")
def test_exact_copies_are_not_paid_under_the_quotient(run):
    printed = run("--sets digits adult --parts copies faithful --draws 1")
    assert printed.count("holds") == 4
    assert "FAILS" not in printed
    assert NO_ADULT in printed


@of("markets", pytest.mark.slow)
def test_rules_of_markets_hold_on_digits(run):
    printed = run("--sets digits --parts twins garbage error --draws 1")
    assert printed.count("holds") == 7
    assert "FAILS" not in printed
