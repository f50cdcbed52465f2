"""`skvalue audit --epsilon`: what is published, and what is refused."""

import re

import numpy as np
import pytest

from skvalue.privacy import Ledger
from tests.audit.command_line import command

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Private and public rows as files; the private ones have other entries."""
    folder = tmp_path_factory.mktemp("private")
    rng = np.random.default_rng(0)
    size = rng.normal(size=300).round(6)
    colour = rng.choice(["red", "blue"], 300)
    label = np.where(size + 2 * (colour == "red") > 1, "high", "low").astype(object)
    frame = pd.DataFrame({"size": size, "colour": colour, "label": label})
    frame.loc[:39, "label"] = "novel"
    frame.loc[40, "colour"] = "secret colour"
    frame[:200].to_csv(folder / "train.csv", index=False)
    frame[200:].to_csv(folder / "val.csv", index=False)
    frame[150:].to_csv(folder / "both.csv", index=False)
    frame[200:].drop(columns="size").to_csv(folder / "narrow.csv", index=False)
    return folder


def audit(folder, options, table="train.csv", validation="val.csv"):
    """Audit a table; returns the exit code."""
    line = f"audit {folder}/{table} --target label -o {folder}/page.html"
    if validation is not None:
        line += f" --validation {folder}/{validation}"
    return command(f"{line} {options}")


@pytest.fixture
def counted(tables, tmp_path, capsys):
    """The page and the output of an audit with epsilon=2, and its ledger."""
    ledger = Ledger(tmp_path / "budget.sqlite", "rows", epsilon=2.5, delta=1e-5)
    assert audit(tables, f"--epsilon 2 --ledger {ledger.path}") == 0
    page = (tables / "page.html").read_text(encoding="utf-8")
    return page, capsys.readouterr().out, ledger


def test_an_audit_beyond_the_budget_is_refused_and_writes_nothing(
    tables, counted, capsys
):
    page, _, ledger = counted
    assert audit(tables, f"--epsilon 2 --ledger {ledger.path}") == 2
    assert "must fit what is left of the budget" in capsys.readouterr().err
    assert ledger.n_charges == 1
    assert (tables / "page.html").read_text(encoding="utf-8") == page
    assert Ledger(ledger.path).dataset_name == "rows"


def test_counts_are_printed_and_written(counted):
    page, out, _ = counted
    counts = dict(re.findall(r"^ +(high|low|other) +(-?\d+)", out, re.MULTILINE))
    assert abs(int(counts["other"]) - 40) < 15
    assert f"<td>{counts['high']}</td>" in page


@pytest.mark.parametrize("where", ["page", "output"])
def test_what_is_published_says_the_guarantee_and_no_private_entry(counted, where):
    page, out, _ = counted
    text = page if where == "page" else out
    assert "not an error rate" in text
    assert "(2, 1e-05)-differential privacy" in text
    assert "secret" not in text
    assert "novel" not in text
    assert "200 rows" not in text


@pytest.mark.parametrize("options", ["", "--equal-rows"])
def test_rows_that_are_public_are_left_out_and_nothing_tells_it(
    options, tables, capsys
):
    """50 of the public rows are private ones: no message, no exit code says so."""
    assert audit(tables, f"--epsilon 1000 {options}", validation="both.csv") == 0
    output = capsys.readouterr()
    counts = re.findall(r"^ +(high|low|other) +(-?\d+)", output.out, re.MULTILINE)
    n_rows = sum(int(count) for _, count in counts)
    assert abs(n_rows - (200 if options else 150)) <= 2
    assert " 50 " not in output.out + output.err


# Options of the command, files, and the message.
REFUSED = [
    ("", dict(validation=None), "--epsilon must be used with --validation"),
    ("--json list.json", {}, "--json must not be used with --epsilon"),
    ("--fail-on 0.1", {}, "--fail-on must not be used with --epsilon"),
    ("--ledger no.sqlite", {}, "--ledger must be a file"),
    ("", dict(table="narrow.csv"), "the table must have the columns of --validation"),
    ("--delta 2", {}, "--delta must be"),
]


@pytest.mark.parametrize(
    ("options", "files", "message"), REFUSED, ids=[message for *_, message in REFUSED]
)
def test_options_that_do_not_go_with_privacy_are_refused(
    options, files, message, tables, capsys
):
    assert audit(tables, f"--epsilon 1 {options}", **files) == 2
    assert message in capsys.readouterr().err
