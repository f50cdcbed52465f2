"""What pages and commands say of tables of every day, word by word."""

import re

import numpy as np
import pytest

from skvalue import LabelErrorDetector
from skvalue.audit import audit_table, check_table, read_table
from tests.audit.command_line import command

pd = pytest.importorskip("pandas")
pytest.importorskip("jinja2")
QUICK = LabelErrorDetector(cv=2, n_verdicts=10, random_state=0)


@pytest.mark.parametrize(
    ("separator", "name"),
    [(";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars"), ("~", "'~'")],
)
def test_what_separates_fields_is_a_word(separator, name, tmp_path, capsys):
    rows = [separator.join(["a", "b"])]
    rows += [separator.join([str(i * 7 % 31), str(i % 5)]) for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    line = ["check", str(tmp_path / "t.csv"), "--sep", separator, "--checks", "fast"]
    assert command(line) == 0
    assert f"2 columns, fields separated by {name}.\n" in capsys.readouterr().out


def test_a_table_of_which_nothing_is_assumed_has_no_empty_place(tmp_path, capsys):
    rows = ["a,b", *(f"{i * 7 % 31},{i % 5}" for i in range(40))]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    assert command(f"check {tmp_path}/t.csv --checks fast") == 0
    assert "t.csv: 40 rows, 2 columns.\n" in capsys.readouterr().out


def test_control_characters_are_named_with_their_place(tmp_path):
    rows = ["a,b", *(f"{i},x" for i in range(9)), "9,y\x07z\x01"]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    [doubt] = read_table(tmp_path / "t.csv").doubts
    assert doubt == (
        "the text holds 2 control characters ('\\x01', '\\x07'), first in row 11, "
        "column 'b'. Mend them."
    )


def test_a_date_that_does_not_fit_is_a_date():
    rng = np.random.default_rng(0)
    days = np.datetime64("2024-01-01") + np.arange(120).astype("timedelta64[D]")
    end = days + rng.integers(1, 4, 120).astype("timedelta64[D]")
    end[7] = np.datetime64("1950-05-03")
    X = pd.DataFrame({"start": days, "end": end, "size": rng.normal(size=120)})
    findings = check_table(X, rng.integers(0, 2, 120), random_state=0)
    [found] = [each for each in findings if each.kind == "improbable entries"]
    assert "end = 1950-05-03 where about 2024-0" in found.sentence
    assert not re.search(r"\d{8}", found.sentence)


@pytest.fixture(scope="module")
def html():
    """The page of a table with long texts and one column of numbers."""
    rng = np.random.default_rng(0)
    size = rng.normal(size=80)
    text = [f"{'word ' * 200}end {i}" for i in range(80)]
    X = pd.DataFrame({"size": size, "text": text})
    y = np.where(size > 0, "yes", "no")
    y[3] = "yes" if y[3] == "no" else "no"
    return audit_table(X, y, detector=QUICK, checks=None).to_html()


def test_a_long_text_is_shown_to_its_end_over_the_whole_width(html):
    assert re.search(r'<div class="long"><dt>text</dt><dd>(word )+end \d+</dd>', html)


def test_the_head_of_a_page_has_no_empty_place(html):
    head = re.search(r'<h1>.*?<div class="soft">(.*?)</div>', html, re.S)[1]
    text = re.sub(r"<[^>]+>", "", head)
    assert re.fullmatch(
        r"2 columns, 2 classes, audited in \d+ seconds\. Rows are counted as Python "
        r"counts them: the first is row 0\.",
        text.strip(),
    )
