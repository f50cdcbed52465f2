"""Corrections of CSV files: fields change, all other bytes stay."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

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
from skvalue.labels import LabelErrorDetector

WORDS = [
    'says "no"',
    "a; b, c",
    "two\nlines",
    "x|y\tz",
    "",
    " 1.234,50 ",
    "Köln",
    "Besançon",
]
NAMES = ["id", "größe", "note", "label"]


def style(rng):
    """How a table is written."""
    return {
        "separator": str(rng.choice([",", ";", "\t", "|"])),
        "encoding": str(
            rng.choice(["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le"])
        ),
        "newline": str(rng.choice(["\r\n", "\n", "\r"])),
        "all quoted": bool(rng.random() < 0.3),
        "lead": bool(rng.random() < 0.2),
        "last newline": bool(rng.random() < 0.7),
    }


def written(records, how):
    """Bytes of a table in a style."""
    out, separator, newline = io.StringIO(), how["separator"], how["newline"]
    whole = how["all quoted"] or newline == "\r"  # else the writer leaves "\n" unquoted
    quoting = csv.QUOTE_ALL if whole else csv.QUOTE_MINIMAL
    csv.writer(
        out, delimiter=separator, quoting=quoting, lineterminator=newline
    ).writerows(records)
    text = (
        out.getvalue() if how["last newline"] else out.getvalue().removesuffix(newline)
    )
    lead = how["lead"] and newline != "\r"
    return (f"sep={separator}{newline}" * lead + text).encode(how["encoding"])


def entries(rng, n=30):
    rows = [
        [f"K-{i}", rng.choice(WORDS), rng.choice(WORDS), rng.choice(["01", "ja"])]
        for i in range(n)
    ]
    return [NAMES, *(list(map(str, row)) for row in rows)]


@pytest.mark.parametrize("seed", range(60))
def test_only_corrected_fields_change(seed):
    rng = np.random.default_rng(seed)
    how, records = style(rng), entries(rng)
    raw = written(records, how)
    assert fix_table(raw, []) == (raw, [])
    rows = rng.choice(np.arange(2, 32), 6, replace=False).tolist()
    new = f'n"e{how["separator"]}w\nÄ'
    places = dict(zip(rows, rng.integers(0, 4, 6).tolist()))
    found = [Correction(r, NAMES[j], records[r - 1][j], new) for r, j in places.items()]
    refused = Correction(rows[0], "label", "nobody said that", "x", accept=False)
    mended, changes = fix_table(raw, [*found, refused])
    assert sorted(changes, key=lambda c: c.row) == sorted(found, key=lambda c: c.row)
    wanted = [list(record) for record in records]
    for row, place in places.items():
        wanted[row - 1][place] = new
    # the style of the generator gives these entries the same bytes
    assert mended == written(wanted, how)
    with pytest.raises(ValueError, match="or it has changed since"):  # stale
        fix_table(mended, found)
    removed, changes = fix_table(
        raw, [Correction(c.row, c.column, c.old, None) for c in found]
    )
    kept = [record for i, record in enumerate(records, 1) if i not in rows]
    assert len(changes) == 6
    last_kept = 31 not in rows or how["last newline"]
    assert removed == written(
        kept, how | {"last newline": how["last newline"] or not last_kept}
    )


RAW = b'name;sold;why\n"Ann";yes ;\n\nBo;no;"a ""b"""\n'


@pytest.mark.parametrize(
    ("corrections", "options", "message"),
    [
        (
            [(2, "sold", "no", "yes")],
            {},
            "Got row 2, column 'sold': expected 'no', found 'yes",
        ),
        (
            [(4, "sold", "yes", "no")],
            {},
            "Got row 4, column 'sold': expected 'yes', found 'no",
        ),
        (
            [(1, "sold", "sold", "x")],
            {},
            "row must be a row from 2 to 4, the header being 1",
        ),
        (
            [(3, "sold", "no", "x")],
            {},
            "row must be a row from 2 to 4, .* that is not empty",
        ),
        ([(4, "size", "no", "x")], {}, "column must be one of name, sold, why"),
        (
            [(4, "sold", "no", "x"), (4, "sold", "no", "y")],
            {},
            "must change a field once",
        ),
        ([(2, "why", "", "x"), (2, "why", "", "y")], {}, "must change a field once"),
        (
            [(4, "sold", "no", "x"), (4, "name", "Bo", None)],
            {},
            "must change a field once",
        ),
        (
            [(4, "name", "Bo", None), (4, "sold", "no", "x")],
            {},
            "must change a field once",
        ),
        (
            [(4, "sold", "no", "Łódź")],
            {"encoding": "cp1252"},
            "of characters that the encoding",
        ),
        ([], {"encoding": "utf-16"}, "encoding='utf-16' does not fit the file"),
        ([], {"encoding": "utf-8-sig"}, "encoding must be one that gives the bytes"),
        ([], {"separator": "|"}, "or quotes that do not match"),
    ],
)
def test_what_cannot_be_applied_is_refused(corrections, options, message):
    with pytest.raises(ValueError, match=message):
        fix_table(RAW, [Correction(*each) for each in corrections], **options)


def test_spaces_around_an_entry_empty_lines_and_quotes(tmp_path):
    fixed = fix_table(
        RAW, [Correction(2, "sold", "yes", "no"), Correction(4, "why", 'a "b"', "c")]
    )
    assert fixed[0] == b'name;sold;why\n"Ann";no;\n\nBo;no;"c"\n'
    fixed = fix_table(
        RAW, [Correction(2, "why", "", "x;y"), Correction(4, "name", "Bo", None)]
    )
    assert fixed[0] == b'name;sold;why\n"Ann";yes ;"x;y"\n\n'
    (tmp_path / "t.csv").write_bytes(RAW)  # the rows of an audit have the same numbers
    assert read_table(tmp_path / "t.csv").frame.index.tolist() == [2 - 2, 4 - 2]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("told", [b"", b"sep=;\r\n"])
def test_a_title_and_no_header(mark, told):
    raw = mark + b"Prices\r\n" + told + b"Ann;yes\r\nBo;no\r\n"
    change = Correction(2, "column 2", "yes", "no")
    fixed, _ = fix_table(raw, [change], header=False, skip_lines=1)
    assert fixed == raw.replace(b"yes", b"no")


def test_corrections_of_a_spreadsheet(tmp_path):
    path = tmp_path / "corrections.csv"
    text = "row;column;old;new;why;accept\r\n2;sold;ja;nein;;WAHR\r\n"
    path.write_bytes(text.encode("cp1252"))
    assert read_corrections(path)[0].accept
    path.write_bytes(text.replace("WAHR", "vielleicht").encode("cp1252"))
    with pytest.raises(
        ValueError, match="accept must be true, false or remove. Got 'vielleicht'"
    ):
        read_corrections(path)
    text = 'row;column;old;new;why;accept\r\n2;sold;ja;"n;ö";äh;TRUE\r\n4;sold;ja;nein;;\r\n\r\n'
    path.write_bytes((text + "7;sold;ja;;;remove\r\n").encode("cp1252"))
    assert read_corrections(path) == [
        Correction(2, "sold", "ja", "n;ö", "äh", True),
        Correction(4, "sold", "ja", "nein", "", False),
        Correction(7, "sold", "ja", None, "", True),
    ]
    for text, message in [
        (
            "row,column,old\n1,a,b\n",
            "a CSV file with the columns row, column, old, new",
        ),
        ("row,column,old,new,accept\nx,a,b,c,true\n", "row must be a row number"),
    ]:
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            read_corrections(path)


def test_a_list_of_changes_is_one_of_corrections(tmp_path):
    changes = [
        Correction(2, "=x", "a\n,b", '"c"', "why; not"),
        Correction(3, "y", "-1", "=1+1", "'=", False),
        Correction(4, "y", "", None),
    ]
    text = corrections_to_csv(changes)
    assert ",=" not in text
    (tmp_path / "changes.csv").write_text(text)
    assert read_corrections(tmp_path / "changes.csv") == changes


@pytest.fixture(scope="module")
def report():
    """The audit of a table of three classes, with verdicts on two rows."""
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[np.arange(60) % 3]
    X = rng.normal(size=(60, 2)) + 4 * np.eye(3, 2)[np.arange(60) % 3]
    y[0] = "b"
    found = audit_table(X, y, detector=LabelErrorDetector(GaussianNB()), target="kind")
    return found.review([0, 1, 2], [True, True, False])


@pytest.mark.parametrize("skipped", [None, 5])
def test_corrections_of_a_report(report, skipped):
    if skipped is not None:  # rows of the file that the table does not have
        numbers = np.arange(60) + 2 + skipped * (np.arange(60) > 0)
        report = AuditReport.from_json(replace(report, numbers=numbers).to_json())
    first, second = corrections_of(report)
    assert first == Correction(2, "kind", "b", "a", "wrong by a verdict")
    row = 3 + (skipped or 0)
    assert second == Correction(
        row, "kind", "b", "b", "wrong by a verdict", accept=False
    )


def test_reports_without_corrections(report):
    for wrong in (
        replace(report, verdicts={}),
        replace(report, about={**report.about, "target": None}),
    ):
        with pytest.raises(
            ValueError, match="report must be one with verdicts and the name"
        ):
            corrections_of(wrong)
    with pytest.raises(ValueError, match="report must be one of classes"):
        corrections_of(replace(report, about={**report.about, "task": "regression"}))


@pytest.mark.parametrize(
    "numbers", [[2], np.arange(60), np.full(60, 3), np.arange(61, 1, -1)]
)
def test_bad_numbers_of_rows(report, numbers):
    with pytest.raises(ValueError, match="numbers must be"):
        AuditReport.from_json(replace(report, numbers=numbers).to_json())
