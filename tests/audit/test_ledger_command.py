"""The command of a ledger, and commands that charge one."""

import numpy as np
import pytest

from skvalue.privacy import Ledger
from tests.audit.command_line import command

pd = pytest.importorskip("pandas")


def test_a_ledger_is_made_spent_and_shown(tmp_path, capsys):
    path = tmp_path / "ledger.db"
    assert command(f"ledger new {path} patients --epsilon 2 --delta 1e-5") == 0
    words = f"ledger spend {path} --delta 1e-6 --epsilon 0.5 --label".split()
    assert command([*words, "a survey"]) == 0
    assert "epsilon=0.5 of 2 spent" in capsys.readouterr().out.splitlines()[-1]
    assert Ledger(path, "patients").n_charges == 1
    assert command(f"ledger show {path}") == 0
    title, charge, remaining = capsys.readouterr().out.splitlines()
    assert "Privacy ledger of 'patients'" in title
    assert charge.startswith("   1  ")
    assert charge.endswith("epsilon=0.5  a survey")
    assert 1 < float(remaining.rstrip(".").split()[-1]) < 1.6


# "FILE" is a ledger; "HERE" is a folder.
BAD = {
    "new FILE rows --epsilon 1 --delta 1e-5": "must be a new file. Got",
    "new HERE/a rows --epsilon -1 --delta 1e-5": "--epsilon must be",
    "new HERE/a rows --epsilon 1 --delta 2": "--delta must be",
    "new HERE/none/a rows --epsilon 1 --delta 1e-5": "No such file",
    "show HERE/a": "must be a file that `skvalue",
    "show HERE/other": "path must be a ledger's SQLite file",
    "spend FILE --epsilon 2 --delta 0": "must fit what is left",
    "spend FILE --epsilon 0 --delta 0": "--epsilon must be",
}


@pytest.mark.parametrize("line", BAD)
def test_a_ledger_says_what_is_wrong_in_a_sentence(line, tmp_path, capsys):
    path = tmp_path / "ledger.db"
    Ledger(path, "rows", epsilon=1.0, delta=1e-5)
    (tmp_path / "other").write_text("text")
    words = line.replace("FILE", str(path)).replace("HERE", str(tmp_path))
    assert command(f"ledger {words}") == 2
    err = capsys.readouterr().err
    assert BAD[line] in err
    assert err.count("\n") == 1
    assert not (tmp_path / "a").exists()


def test_a_ledger_of_rows_without_a_name_is_refused(tmp_path, capsys):
    path = tmp_path / "a"
    words = ["ledger", "new", str(path), "", "--epsilon", "1", "--delta", "1e-5"]
    assert command(words) == 2
    err = capsys.readouterr().err
    assert "dataset_name must be a string" in err
    assert err.count("\n") == 1
    assert not path.exists()


@pytest.fixture
def tables(tmp_path):
    """A folder with private rows, mine.csv, and public ones."""
    rng = np.random.default_rng(0)
    for name in ("mine.csv", "public.csv"):
        frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
        frame["label"] = np.where(frame["a"] > 0, "x", "y")
        frame.to_csv(tmp_path / name, index=False)
    return tmp_path


def value_line(folder):
    """The command of values by private rows, without epsilon."""
    return (
        f"value {folder}/mine.csv --target label --method tknn "
        f"--validation {folder}/public.csv -o {folder}/out.csv"
    )


@pytest.mark.parametrize("option", ["--ledger ledger.db", "--equal-rows"])
@pytest.mark.parametrize("name", ["value", "audit"])
def test_options_of_privacy_without_epsilon_are_refused(name, option, tables, capsys):
    line = value_line(tables)
    if name == "audit":
        line = f"audit {tables}/mine.csv --target label -o {tables}/page.html"
    assert command(f"{line} {option}") == 2
    message = f"{option.split()[0]} must be used with --epsilon"
    assert message in capsys.readouterr().err


def test_a_ledger_that_does_not_exist_is_refused(tables, capsys):
    line = value_line(tables)
    assert command(f"{line} --epsilon 0.8 --ledger {tables}/ledger.db") == 2
    message = "--ledger must be a file that `skvalue ledger new` made"
    assert message in capsys.readouterr().err


def test_a_private_fit_charges_a_ledger_until_its_budget_is_spent(tables, capsys):
    path = tables / "ledger.db"
    Ledger(path, "patients", epsilon=1.0, delta=1e-5)
    line = f"{value_line(tables)} --epsilon 0.8 --ledger {path}"
    assert command(line) == 0
    (tables / "out.csv").unlink()
    assert command(line) == 2
    assert "must fit what is left of the budget" in capsys.readouterr().err
    assert not (tables / "out.csv").exists()
    assert Ledger(path).spent == pytest.approx(0.8)
