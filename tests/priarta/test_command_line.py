"""The seller's command: its summary, its errors, and when a ledger is charged."""

import os
import runpy
import sys

import numpy as np
import pytest
from full_disk import full_disk

from skvalue.priarta import BuyerModel, Identity, PriArTaScorer, Summary
from skvalue.priarta.__main__ import main
from skvalue.priarta.seller import max_file_size
from skvalue.privacy import Ledger

from .markets import gaussian_rows


@pytest.fixture(scope="module")
def scorer():
    rows = gaussian_rows(np.random.default_rng(0), 200, 4)
    return PriArTaScorer("pca", max_norm=1.0, mean_weight=0.6).fit(rows)


@pytest.fixture
def model(scorer, tmp_path):
    """The folder of the buyer's model."""
    scorer.export(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def rows(tmp_path):
    """A file of ten rows."""
    np.savetxt(tmp_path / "rows.csv", np.zeros((10, 4)), delimiter=",")
    return tmp_path / "rows.csv"


def run(*arguments):
    return main([str(argument) for argument in arguments])


# Ways to write the numbers of a file without a header.
LINES = {
    "plain": "1,2.5,-3,4e-1\n",
    "carriage returns": "1,2.5,-3,4e-1\r\n",
    "spaces": " 1, 2.5 ,-3, 4e-1\n",
    "in quotes": '"1","2.5","-3","4e-1"\n',
    "one in quotes": '1,"2.5",-3,4e-1\n',
}


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("line", LINES)
def test_rows_without_a_header_are_read_however_they_are_written(
    line, mark, model, tmp_path
):
    rows = tmp_path / "rows.csv"
    rows.write_text(mark + 10 * LINES[line], encoding="utf-8", newline="")
    arguments = ["summarize", model, rows, "--epsilon", 0.5, "--delta", 1e-6]
    arguments += ["--notes", tmp_path / "notes.txt", "-o", tmp_path / "summary.json"]
    assert run(*arguments) == 0
    assert (tmp_path / "notes.txt").read_text().startswith("0 rows could not be read")


def test_summary_of_the_command_has_nearly_the_exact_score(
    scorer, model, rng, tmp_path, monkeypatch, capsys
):
    X = gaussian_rows(rng, 3000, 4, 0.5)
    np.savez(tmp_path / "mine.npz", X)
    output = tmp_path / "summary.json"
    arguments = [
        *("summarize", model, tmp_path / "mine.npz"),
        *("--epsilon", 0.8, "--delta", 1e-5, "-o", output),
    ]
    monkeypatch.setattr(sys, "argv", ["priarta", *map(str, arguments)])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_module("skvalue.priarta", run_name="__main__")
    printed = capsys.readouterr().out
    assert "This release satisfies (0.8, 1e-05)-differential privacy." in printed
    assert f"{output.stat().st_size} bytes" in printed
    exact = scorer.transform([X])[0, 0]
    assert scorer.score_summaries([output])[0, 0] == pytest.approx(exact, abs=0.1)
    assert not Summary.from_json(output.read_text()).seeded


def test_an_empty_line_of_a_single_column_is_a_null_row(tmp_path):
    PriArTaScorer().fit(np.arange(10.0)[:, None]).export(tmp_path / "model")
    for name, line in (("whole", "4"), ("empty", "")):
        (tmp_path / f"{name}.csv").write_text(f"1\n2\n{line}\n3\n")
        output = tmp_path / f"{name}.json"
        options = ["--epsilon", 1, "--delta", 1e-5, "--notes", tmp_path / "notes.txt"]
        path = tmp_path / f"{name}.csv"
        assert run("summarize", tmp_path / "model", path, *options, "-o", output) == 0
        assert Summary.from_json(output.read_text()).n_samples == 4
    assert (tmp_path / "notes.txt").read_text().startswith("1 rows could not be read")


class TestErrors:
    @pytest.fixture
    def output(self, tmp_path):
        return tmp_path / "out.json"

    @pytest.fixture
    def options(self, output):
        return ["--epsilon", 0.8, "--delta", 1e-5, "-o", output]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--relation", "near"], "'relation' parameter"),
            (["--ledger", "l.db"], "must be given together"),
            (["--ledger", "none.db", "--dataset-name", "rows"], "--ledger must be"),
            (["--ledger", ".", "--dataset-name", "rows"], "--ledger must be the file"),
        ],
        ids=["relation", "no name", "no ledger", "folder"],
    )
    def test_invalid_option_is_refused(
        self, model, rows, options, output, arguments, message, capsys
    ):
        assert run("summarize", model, rows, *options, *arguments) == 2
        assert message in capsys.readouterr().err
        assert not output.exists()

    def test_missing_model_is_refused(self, tmp_path, rows, options, output, capsys):
        assert run("summarize", tmp_path / "x", rows, *options) == 2
        assert "No such file" in capsys.readouterr().err
        assert not output.exists()

    def test_rows_of_another_format_are_refused(
        self, model, tmp_path, options, output, capsys
    ):
        assert run("summarize", model, tmp_path / "rows.xls", *options) == 2
        assert "rows must be an .npz, .npy or" in capsys.readouterr().err
        assert not output.exists()

    def test_summary_is_not_overwritten(self, model, rows, options, capsys):
        assert run("summarize", model, rows, *options) == 0
        assert run("summarize", model, rows, *options) == 2
        assert "--output must be a new file" in capsys.readouterr().err


class TestCheck:
    def test_size_of_a_summary_is_printed(self, model, rows, tmp_path, capsys):
        output = tmp_path / "out.json"
        options = ["--epsilon", 0.8, "--delta", 1e-5, "-o", output]
        assert run("summarize", model, rows, *options) == 0
        assert run("check", output) == 0
        assert "10 rows, 4 dimensions" in capsys.readouterr().out

    def test_text_that_is_no_summary_is_refused(self, rows, capsys):
        assert run("check", rows) == 2
        assert "rows.csv: text must be JSON" in capsys.readouterr().err

    def test_bytes_that_are_no_summary_are_refused(self, tmp_path, capsys):
        np.save(tmp_path / "rows.npy", np.zeros((10, 4)))
        assert run("check", tmp_path / "rows.npy") == 2
        assert "summary must be a file" in capsys.readouterr().err


class TestLedger:
    @pytest.fixture
    def ledger(self, tmp_path):
        return Ledger(tmp_path / "ledger.db", "rows", epsilon=1.0, delta=1e-5)

    @pytest.fixture
    def arguments(self, model, rows, tmp_path, ledger):
        """All arguments but the file of the summary."""
        return [
            *("summarize", model, rows, "--epsilon", 0.8, "--delta", 1e-5),
            *("--ledger", tmp_path / "ledger.db", "--dataset-name", "rows", "-o"),
        ]

    def test_is_not_charged_for_a_summary_that_cannot_be_written(
        self, arguments, ledger, tmp_path, capsys
    ):
        assert run(*arguments, tmp_path / "no folder" / "a.json") == 2
        assert "must be in a folder that can be written" in capsys.readouterr().err
        assert ledger.spent == 0

    @pytest.mark.parametrize(
        "path",
        ["rows.csv", "a.json", "ledger.db", "model/config.json", "none/notes.txt"],
    )
    def test_is_not_charged_for_notes_over_another_file(
        self, arguments, ledger, rows, tmp_path, path, capsys
    ):
        before = rows.read_bytes()
        notes = ["--notes", tmp_path / path]
        assert run(*arguments, tmp_path / "a.json", *notes) == 2
        assert "--notes must be" in capsys.readouterr().err
        assert ledger.spent == 0
        assert rows.read_bytes() == before

    def test_is_charged_for_a_summary(self, arguments, ledger, tmp_path):
        assert run(*arguments, tmp_path / "a.json") == 0
        assert ledger.spent == pytest.approx(0.8)

    def test_refuses_a_summary_over_the_budget(
        self, arguments, ledger, tmp_path, capsys
    ):
        assert run(*arguments, tmp_path / "a.json") == 0
        assert run(*arguments, tmp_path / "b.json") == 2
        message = "the release must fit what is left of the budget"
        assert message in capsys.readouterr().err
        assert not (tmp_path / "b.json").exists()


class TestFullDisk:
    """The space is taken before the charge; what cannot be written then is printed."""

    @pytest.fixture
    def ledger(self, tmp_path):
        return Ledger(tmp_path / "ledger", "rows", epsilon=1.0, delta=1e-5)

    @pytest.fixture
    def arguments(self, tmp_path, ledger):
        """All arguments but the file of the summary, which has 50 dimensions."""
        maps = [Identity().fit(np.zeros((2, 50))) for _ in range(2)]
        BuyerModel(*maps, np.zeros(50), 1.0).save(tmp_path / "model")
        np.save(tmp_path / "rows.npy", np.zeros((10, 50)))
        return [
            *("summarize", tmp_path / "model", tmp_path / "rows.npy"),
            *("--epsilon", 0.4, "--delta", 1e-6),
            *("--ledger", tmp_path / "ledger", "--dataset-name", "rows", "-o"),
        ]

    def test_costs_no_budget(self, arguments, ledger, tmp_path, capsys):
        output = tmp_path / "summary.json"
        with full_disk(20_000):  # enough for the ledger
            assert run(*arguments, output) == 2
        assert "File too large); nothing was released" in capsys.readouterr().err
        assert ledger.n_charges == 0
        assert not output.exists()

    def test_empty_file_of_a_killed_process_is_overwritten(
        self, arguments, ledger, tmp_path
    ):
        output = tmp_path / "summary.json"
        output.touch()
        assert run(*arguments, output) == 0
        assert ledger.n_charges == 1
        assert output.stat().st_size <= max_file_size(50)

    def test_released_summary_that_cannot_be_written_is_printed(
        self, arguments, ledger, tmp_path, capsys, monkeypatch
    ):
        def no_space(*paths):
            raise OSError(28, "No space left on device")

        before = set(tmp_path.iterdir())
        monkeypatch.setattr(os, "replace", no_space)
        assert run(*arguments, tmp_path / "lost.json") == 2
        printed = capsys.readouterr()
        message = "No space left on device); the release was made and is printed"
        assert message in printed.err
        assert Summary.from_json(printed.out).n_samples == 10
        assert ledger.n_charges == 1
        assert set(tmp_path.iterdir()) == before
