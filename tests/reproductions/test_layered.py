"""Layered Shapley values: the published scale, private ones, and equal budgets."""

import numpy as np
import pytest

from skvalue.games import ModelGame

from .scripts import of


@of("layered_figures")
def test_the_published_scale_is_inflated_unless_it_is_clamped(script):
    inflated = script.published_scale(100, 1.0, bound=0.5)
    assert inflated == pytest.approx(0.601, abs=5e-4)
    clamped = script.published_scale(100, 1.0, bound=0.5, clamp=True)
    assert inflated / clamped == pytest.approx(11.6, 0.01)
    assert clamped == pytest.approx(0.0518, abs=5e-5)


@of("layered_private")
def test_private_values_are_printed_beside_what_is_free(script, monkeypatch, capsys):
    monkeypatch.setattr(script, "SETS", {"synthetic": (60, 80)})
    monkeypatch.setattr(script, "PENALTIES", (1.0,))
    monkeypatch.setattr(script, "DEPTHS", (3,))
    script.print_cells(["synthetic"], None, n_draws=3)
    _, _, row, last = capsys.readouterr().out.splitlines()[:4]
    cells = row.split()
    assert cells[:3] == ["synthetic", "1", "3"]
    predicted, summed, private = map(float, cells[3:6])
    # Of 60 rows the noise is larger than layer 0.
    assert min(predicted, private) < 0.5 < summed
    assert private < 0.5 * summed
    assert last.startswith("Worst: ")


@of("layered_budgets")
@pytest.mark.filterwarnings("ignore:The values are based on")
def test_equal_budgets_are_compared(script, monkeypatch, capsys, rng, tmp_path):
    X = rng.normal(size=(100, 3))
    np.savez(tmp_path / "phoneme.npz", X=X, y=X[:, 0] + rng.normal(size=100) > 0)
    monkeypatch.setattr(script, "N_VAL", 40)
    utility = ModelGame.utility
    script.print_budgets(tmp_path, n=20, budget=300, reference=3000, seeds=2)
    script.print_defaults(tmp_path, n=20)
    assert ModelGame.utility is utility  # the script counts rows in its place
    printed = capsys.readouterr().out
    rows = [row.rsplit(maxsplit=6) for row in printed.splitlines()[3:6]]
    assert [row[0] for row in rows] == list(script.METHODS)
    assert rows[0][4:] == ["1.00"] * 3
    n_rows = [float(row[2]) for row in rows]
    assert n_rows[2] < n_rows[1] < 300 * 20  # "bound" prefers small coalitions
    assert "Default fits, 20 rows" in printed


@pytest.mark.slow
@of("layered_figures")
def test_correlations_of_proved_values_are_those_of_the_page(script):
    """Synthetic rows: .86 (.03) for one queried value, .06 (.02) for all values."""
    correlations = []
    for seed in range(5):
        X, y, points, _, centre = script.problem("synthetic", None, seed)
        rng = np.random.default_rng(seed)
        of_set = script.proved(X, y, points, centre, seed, rng, 20)
        correlations.append(
            [
                script.rank_correlations(exact, draws).mean()
                for exact, draws, _ in of_set.values()
            ]
        )
    np.testing.assert_allclose(np.mean(correlations, axis=0), [0.86, 0.06], atol=0.04)
