"""Rows that join recorded walks."""

import numpy as np
import pytest

from skvalue.derivatives import class_probabilities, recorded_positions
from skvalue.semivalues import size_weights


@pytest.mark.parametrize("semivalue", ["shapley", (16, 1), "leave-one-out"], ids=str)
def test_recorded_positions_are_quantiles_of_the_weights(semivalue):
    q = size_weights(semivalue, 51)
    record = recorded_positions(q, 20, 5, n_models=1000)
    assert [len(positions) for positions in record[:5]] == [0] * 5
    assert {len(positions) for positions in record[5:]} == {66, 67}
    counts = np.bincount(np.concatenate(record).astype(int), minlength=51)
    np.testing.assert_allclose(counts / 1000, q, atol=1e-3)


class FixedOutputs:
    """A model whose outputs (n_thetas, n_rows, n_outputs) are given."""

    def __init__(self, outputs):
        self._outputs = outputs

    def outputs(self, thetas):
        return self._outputs


@pytest.mark.parametrize(
    ("odds", "expected"),
    [
        ([[[1.0, 3.0]], [[1.0, 1.0]]], [0.375, 0.625]),
        ([[[3.0]]], [0.25, 0.75]),  # one output, of the second class
    ],
    ids=["two", "one"],
)
def test_probabilities_are_means_over_models(odds, expected):
    model = FixedOutputs(np.log(np.array(odds)))
    probabilities = class_probabilities(model, np.zeros((len(odds), 1)))
    np.testing.assert_allclose(probabilities, [expected])
