"""`skvalue audit --epsilon`: what is published, and what is refused."""

import re

import numpy as np
import pytest

from skvalue.audit.commands import main
from skvalue.privacy import Ledger

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Private and public rows as files: the private one has other labels and
    spellings."""
    folder, rng = tmp_path_factory.mktemp("private"), np.random.default_rng(0)
    size, colour = rng.normal(size=300).round(6), rng.choice(["red", "blue"], 300)
    label = np.where(size + 2 * (colour == "red") > 1, "high", "low").astype(object)
    frame = pd.DataFrame({"size": size, "colour": colour, "label": label})
    frame.loc[:39, "label"] = "novel"
    frame.loc[40, "colour"] = "secret colour"
    frame[:200].to_csv(folder / "train.csv", index=False)
    frame[200:].to_csv(folder / "val.csv", index=False)
    frame[150:].to_csv(folder / "both.csv", index=False)
    frame[200:].drop(columns="size").to_csv(folder / "narrow.csv", index=False)
    return folder


def audit(folder, *words, table="train.csv", validation="val.csv"):
    start = ["audit", folder / table, "--target", "label", "-o", folder / "page.html"]
    start += ["--validation", folder / validation] if validation else []
    return main([str(word) for word in (*start, *words)])


def test_counts_are_printed_written_and_charged(tables, capsys):
    ledger = Ledger(tables / "budget.sqlite", "rows", epsilon=2.5, delta=1e-5)
    assert audit(tables, "--epsilon", 2, "--ledger", ledger.path) == 0
    page = (tables / "page.html").read_text(encoding="utf-8")
    assert audit(tables, "--epsilon", 2, "--ledger", ledger.path) == 2
    assert ledger.n_charges == 1
    assert page == (tables / "page.html").read_text(encoding="utf-8")
    assert Ledger(ledger.path).dataset_name == "rows"
    out = capsys.readouterr()
    assert "must fit what is left of the budget" in out.err
    found = dict(re.findall(r"^ +(high|low|other) +(-?\d+)", out.out, re.MULTILINE))
    assert abs(int(found["other"]) - 40) < 15
    for text in (page, out.out):
        assert "not an error rate" in text
        assert "(2, 1e-05)-differential privacy" in text
        assert "secret" not in text
        assert "novel" not in text
        assert "200 rows" not in text
    assert f"<td>{found['high']}</td>" in page


REFUSED = {
    "--epsilon must be used with --validation": dict(validation=None),
    "Got 50 rows that are in both": dict(validation="both.csv"),
    "--json must not be used with --epsilon": dict(words=["--json", "list.json"]),
    "--fail-on must not be used with --epsilon": dict(words=["--fail-on", "0.1"]),
    "--ledger must be a file": dict(words=["--ledger", "no.sqlite"]),
    "the table must have the columns of --validation": dict(table="narrow.csv"),
    "--delta must be": dict(words=["--delta", "2"]),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(tables, capsys, message):
    options = dict(REFUSED[message])
    assert audit(tables, "--epsilon", 1, *options.pop("words", ()), **options) == 2
    assert message in capsys.readouterr().err
