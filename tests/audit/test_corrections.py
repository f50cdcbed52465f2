"""Corrections of CSV files: fields change, all other bytes stay."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from skvalue import LabelErrorDetector
from skvalue.audit import (
    AuditReport,
    Correction,
    audit_table,
    corrections_of,
    corrections_to_csv,
    fix_table,
    read_corrections,
    read_table,
)

NAMES = ["id", "größe", "note", "label"]
WORDS = [
    'says "no"', "a; b, c", "two\nlines", "x|y\tz", "", " 1.234,50 ", "Köln",
    "Besançon",
]  # fmt: skip


# Files of any style -------------------------------------------------------------------


def draw_style(rng):
    """How a table is written."""
    return {
        "separator": str(rng.choice([",", ";", "\t", "|"])),
        "encoding": str(
            rng.choice(["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le"])
        ),
        "newline": str(rng.choice(["\r\n", "\n", "\r"])),
        "all quoted": bool(rng.random() < 0.3),
        "names separator": bool(rng.random() < 0.2),
        "last newline": bool(rng.random() < 0.7),
    }


def write_records(records, style):
    """Bytes of a table in a style."""
    separator = style["separator"]
    newline = style["newline"]
    # With "\r" as newline, the writer would leave "\n" in an entry without quotes.
    all_quoted = style["all quoted"] or newline == "\r"
    out = io.StringIO()
    writer = csv.writer(
        out,
        delimiter=separator,
        quoting=csv.QUOTE_ALL if all_quoted else csv.QUOTE_MINIMAL,
        lineterminator=newline,
    )
    writer.writerows(records)
    text = out.getvalue()
    if not style["last newline"]:
        text = text.removesuffix(newline)
    if style["names separator"] and newline != "\r":
        text = f"sep={separator}{newline}{text}"
    return text.encode(style["encoding"])


def draw_records(rng, n=30):
    """A header and n rows."""
    rows = [
        [f"K-{i}", rng.choice(WORDS), rng.choice(WORDS), rng.choice(["01", "ja"])]
        for i in range(n)
    ]
    return [NAMES, *(list(map(str, row)) for row in rows)]


class Drawn:
    """A file of a style, and corrections of six of its fields."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.style = draw_style(rng)
        self.records = draw_records(rng)
        self.raw = write_records(self.records, self.style)
        self.rows = rng.choice(np.arange(2, 32), 6, replace=False).tolist()
        columns = rng.integers(0, 4, 6).tolist()
        self.new = f'n"e{self.style["separator"]}w\nÄ'
        self.fields = dict(zip(self.rows, columns))
        self.corrections = [
            Correction(row, NAMES[column], self.records[row - 1][column], self.new)
            for row, column in self.fields.items()
        ]


@pytest.mark.parametrize("seed", range(60))
def test_only_corrected_fields_change(seed):
    drawn = Drawn(seed)
    refused = Correction(drawn.rows[0], "label", "no entry", "x", accept=False)
    fixed, changes = fix_table(drawn.raw, [*drawn.corrections, refused])

    def by_row(correction):
        return correction.row

    assert sorted(changes, key=by_row) == sorted(drawn.corrections, key=by_row)
    expected = [list(record) for record in drawn.records]
    for row, column in drawn.fields.items():
        expected[row - 1][column] = drawn.new
    # The style writes these entries with the same bytes as the corrections do.
    assert fixed == write_records(expected, drawn.style)


@pytest.mark.parametrize("seed", range(60))
def test_a_table_without_corrections_keeps_its_bytes(seed):
    raw = Drawn(seed).raw
    assert fix_table(raw, []) == (raw, [])


@pytest.mark.parametrize("seed", range(60))
def test_a_correction_that_was_made_is_stale(seed):
    drawn = Drawn(seed)
    fixed, _ = fix_table(drawn.raw, drawn.corrections)
    with pytest.raises(ValueError, match="or it has changed since"):
        fix_table(fixed, drawn.corrections)


@pytest.mark.parametrize("seed", range(60))
def test_removed_rows_leave_all_others(seed):
    drawn = Drawn(seed)
    removals = [
        Correction(correction.row, correction.column, correction.old, None)
        for correction in drawn.corrections
    ]
    fixed, changes = fix_table(drawn.raw, removals)
    assert len(changes) == 6
    kept = [record for i, record in enumerate(drawn.records, 1) if i not in drawn.rows]
    # The line before a removed last one keeps its newline.
    ends_with_newline = drawn.style["last newline"] or 31 in drawn.rows
    assert fixed == write_records(
        kept, {**drawn.style, "last newline": ends_with_newline}
    )


# Single fields ------------------------------------------------------------------------

RAW = b'name;sold;why\n"Ann";yes ;\n\nBo;no;"a ""b"""\n'

REFUSED = [
    ([(2, "sold", "no", "yes")], "Got row 2, column 'sold': expected 'no', found 'yes"),
    ([(4, "sold", "yes", "no")], "Got row 4, column 'sold': expected 'yes', found 'no"),
    ([(1, "sold", "sold", "x")], "row must be a row from 2 to 4, the header being 1"),
    ([(3, "sold", "no", "x")], "row must be a row from 2 to 4, .* that is not empty"),
    ([(4, "size", "no", "x")], "column must be one of name, sold, why"),
    ([(4, "sold", "no", "x"), (4, "sold", "no", "y")], "must change a field once"),
    ([(2, "why", "", "x"), (2, "why", "", "y")], "must change a field once"),
    ([(4, "sold", "no", "x"), (4, "name", "Bo", None)], "must change a field once"),
    ([(4, "name", "Bo", None), (4, "sold", "no", "x")], "must change a field once"),
]  # fmt: skip


@pytest.mark.parametrize(("corrections", "message"), REFUSED)
def test_what_cannot_be_applied_is_refused(corrections, message):
    with pytest.raises(ValueError, match=message):
        fix_table(RAW, [Correction(*fields) for fields in corrections])


def test_a_letter_that_the_encoding_lacks_is_refused():
    correction = Correction(4, "sold", "no", "Łódź")
    with pytest.raises(ValueError, match="of characters that the encoding"):
        fix_table(RAW, [correction], encoding="cp1252")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoding": "utf-16"}, "encoding must fit the file. Got 'utf-16'"),
        ({"encoding": "utf-8-sig"}, "encoding must be one that gives the bytes"),
        ({"separator": "|"}, "or quotes that do not match"),
    ],
)
def test_options_that_do_not_fit_the_bytes_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        fix_table(RAW, [], **options)


def test_spaces_around_an_entry_go_and_quotes_stay():
    corrections = [
        Correction(2, "sold", "yes", "no"),
        Correction(4, "why", 'a "b"', "c"),
    ]
    fixed, _ = fix_table(RAW, corrections)
    assert fixed == b'name;sold;why\n"Ann";no;\n\nBo;no;"c"\n'


def test_empty_lines_stay_where_a_row_is_removed():
    corrections = [
        Correction(2, "why", "", "x;y"),
        Correction(4, "name", "Bo", None),
    ]
    fixed, _ = fix_table(RAW, corrections)
    assert fixed == b'name;sold;why\n"Ann";yes ;"x;y"\n\n'


def test_the_rows_of_an_audit_have_the_numbers_of_corrections(tmp_path):
    (tmp_path / "t.csv").write_bytes(RAW)
    assert read_table(tmp_path / "t.csv").frame.index.tolist() == [2 - 2, 4 - 2]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("declaration", [b"", b"sep=;\r\n"])
def test_a_table_with_a_title_and_without_a_header_is_corrected(mark, declaration):
    raw = mark + b"Prices\r\n" + declaration + b"Ann;yes\r\nBo;no\r\n"
    correction = Correction(2, "column 2", "yes", "no")
    fixed, _ = fix_table(raw, [correction], header=False, skip_lines=1)
    assert fixed == raw.replace(b"yes", b"no")


# Files of corrections -----------------------------------------------------------------


@pytest.fixture
def read(tmp_path):
    """Read a text as a file of corrections, as a German spreadsheet writes it."""

    def read(text):
        path = tmp_path / "corrections.csv"
        path.write_bytes(text.encode("cp1252"))
        return read_corrections(path)

    return read


def test_true_may_be_a_word_of_the_language_of_a_spreadsheet(read):
    text = "row;column;old;new;why;accept\r\n2;sold;ja;nein;;WAHR\r\n"
    assert read(text)[0].accept


def test_another_word_than_true_and_false_is_refused(read):
    text = "row;column;old;new;why;accept\r\n2;sold;ja;nein;;vielleicht\r\n"
    message = "accept must be true, false or remove. Got 'vielleicht'"
    with pytest.raises(ValueError, match=message):
        read(text)


def test_corrections_of_a_spreadsheet_are_read(read):
    lines = [
        "row;column;old;new;why;accept",
        '2;sold;ja;"n;ö";äh;TRUE',
        "4;sold;ja;nein;;",
        "",
        "7;sold;ja;;;remove",
        "",
    ]
    assert read("\r\n".join(lines)) == [
        Correction(2, "sold", "ja", "n;ö", "äh", True),
        Correction(4, "sold", "ja", "nein", "", False),
        Correction(7, "sold", "ja", None, "", True),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "row,column,old\n1,a,b\n",
            "a CSV file with the columns row, column, old, new",
        ),
        ("row,column,old,new,accept\nx,a,b,c,true\n", "row must be a row number"),
    ],
)
def test_files_of_something_else_are_refused(read, text, message):
    with pytest.raises(ValueError, match=message):
        read(text)


def test_a_list_of_changes_is_one_of_corrections(tmp_path):
    changes = [
        Correction(2, "a\rb", "\r", "c\r\nd", "\re"),
        Correction(2, "=x", "a\n,b", '"c"', "why; not"),
        Correction(3, "y", "-1", "=1+1", "'=", False),
        Correction(4, "y", "", None),
    ]
    text = corrections_to_csv(changes)
    assert ",=" not in text  # which a spreadsheet takes for a formula
    (tmp_path / "changes.csv").write_text(text)
    assert read_corrections(tmp_path / "changes.csv") == changes


# Corrections of reports ---------------------------------------------------------------


@pytest.fixture(scope="module")
def report():
    """The audit of a table of three classes, with verdicts on three rows."""
    rng = np.random.default_rng(0)
    codes = np.arange(60) % 3
    y = np.array(["a", "b", "c"])[codes]
    y[0] = "b"
    X = rng.normal(size=(60, 2)) + 4 * np.eye(3, 2)[codes]
    detector = LabelErrorDetector(GaussianNB())
    report = audit_table(X, y, detector=detector, target="kind")
    return report.review([0, 1, 2], [True, True, False])


def with_gap(report, n_skipped):
    """The report of a file that skips rows after the first one."""
    rows = np.arange(60)
    numbers = rows + 2 + n_skipped * (rows > 0)
    return AuditReport.from_json(replace(report, numbers=numbers).to_json())


@pytest.mark.parametrize("n_skipped", [None, 5])
def test_wrong_labels_become_the_suggestions(report, n_skipped):
    row = 3
    if n_skipped is not None:
        report = with_gap(report, n_skipped)
        row = 3 + n_skipped
    why = "wrong by a verdict"
    assert corrections_of(report) == [
        Correction(2, "kind", "b", "a", why),
        # No other label is suggested.
        Correction(row, "kind", "b", "b", why, accept=False),
    ]


def test_reports_without_verdicts_or_target_have_no_corrections(report):
    without_target = {**report.about, "target": None}
    for changed in (
        replace(report, verdicts={}),
        replace(report, about=without_target),
    ):
        message = "report must be one with verdicts and the name"
        with pytest.raises(ValueError, match=message):
            corrections_of(changed)


def test_reports_of_a_regression_have_no_corrections(report):
    about = {**report.about, "task": "regression"}
    with pytest.raises(ValueError, match="report must be one of classes"):
        corrections_of(replace(report, about=about))


@pytest.mark.parametrize(
    "numbers", [[2], np.arange(60), np.full(60, 3), np.arange(61, 1, -1)]
)
def test_row_numbers_that_no_file_has_are_refused(report, numbers):
    with pytest.raises(ValueError, match="numbers must be"):
        AuditReport.from_json(replace(report, numbers=numbers).to_json())
