"""What dropping doubtful labels does to a model."""

import pytest

from .scripts import of


@of("clean_rule", pytest.mark.slow)
def test_models_gain_where_a_fifth_of_the_labels_is_wrong(script):
    record = script.measure("breast_cancer", None, ("uniform", 0.2), 0)
    assert record["n_wrong_dropped"] > 0.8 * record["n_dropped"] > 20
    accuracy, balanced_accuracy = record["changes"]["boosting"]
    assert accuracy > 0
    assert balanced_accuracy > 0


@of("clean_rule", pytest.mark.slow)
def test_a_table_is_printed_by_noise(run):
    printed = run("--tables breast_cancer --seeds 1")
    assert printed.startswith("1 tables, 1 seeds")
    assert printed.count("one class  20%") == 3
