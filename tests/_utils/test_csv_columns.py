"""Columns of CSV files, of which each line is read by itself."""

import numpy as np
import pytest

from skvalue._utils.csv_columns import (
    parse_number,
    private_numbers,
    public_numbers,
    read_columns,
    read_header,
)


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "rows.csv"
        if isinstance(content, str):
            content = content.encode()
        path.write_bytes(content)
        return path

    return write


# What is read -> the file, the separator, and columns "a" and "b".
FILES = {
    "plain": ("a,b\n1,2\n3,4\n", ",", [[1, 2], [3, 4]]),
    "another order": ("b,x,a\n2,?,1\n4,?,3\n", ",", [[1, 2], [3, 4]]),
    "byte order mark": (b"\xef\xbb\xbfa,b\n1,2\n", ",", [[1, 2]]),
    "lines of Windows": ("a,b\r\n1,2\r\n", ",", [[1, 2]]),
    "no last line end": ("a,b\n1,2", ",", [[1, 2]]),
    "blank lines": ("a,b\n\n1,2\n  \n", ",", [[1, 2]]),
    "quoted": ('"a","b"\n"1","2"\n', ",", [[1, 2]]),
    "quoted separators": ('a,"x,y",b\n1,"p,q",2\n', ",", [[1, 2]]),
    "semicolons": ("a;b\n1;2\n", ";", [[1, 2]]),
    "tabs": ("a\tb\n1\t2\n", "\t", [[1, 2]]),
    "tabs alone": ("a\tb\n\t\n1\t2\n", "\t", [[np.nan, np.nan], [1, 2]]),
    "spaces": (" a , b \n 1 , 2 \n", ",", [[1, 2]]),
    "other bytes": (b"a,\xff,b\n1,\xff,2\n", ",", [[1, 2]]),
    "an open quote": ('a,b\n"1,2\n3,4\n', ",", [[np.nan, np.nan], [3, 4]]),
    "too few cells": ("a,b\n1\n3,4\n", ",", [[np.nan, np.nan], [3, 4]]),
    "too many cells": ("a,b\n1,2,3\n3,4\n", ",", [[np.nan, np.nan], [3, 4]]),
    "no number": ("a,b\n1,x\n3,4\n", ",", [[np.nan, np.nan], [3, 4]]),
    "a separator of lines in a cell": ("a,b\n1,\x0b2\n3,4\n", ",", [[1, 2], [3, 4]]),
    "header alone": ("a,b\n", ",", np.zeros((0, 2))),
}


@pytest.mark.parametrize("what", FILES)
def test_private_rows_are_read_one_by_one(what, write):
    content, separator, expected = FILES[what]
    columns = read_columns(write(content), ["a", "b"], separator)
    np.testing.assert_array_equal(private_numbers(columns, 2), expected)


@pytest.mark.parametrize("what", FILES)
def test_public_rows_are_the_same_or_refused_by_their_line(what, write):
    content, separator, expected = FILES[what]
    columns = read_columns(write(content), ["a", "b"], separator)
    if len(expected) and np.isfinite(expected).all():
        np.testing.assert_array_equal(public_numbers(columns, 2), expected)
        return
    place = "a header alone" if what == "header alone" else "in line 2"
    with pytest.raises(ValueError, match=f"rows.csv must have.*{place}|.*{place}"):
        public_numbers(columns, 2)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a\n1\n\n3\n", [[1], [np.nan], [3]]),
        ("a\r\n1\r\n \r\n3\r\n", [[1], [np.nan], [3]]),
        ("a\n1\n\n", [[1], [np.nan]]),
        ("a\n\n3", [[np.nan], [3]]),
    ],
)
def test_an_empty_line_is_a_row_of_a_single_column(content, expected, write):
    columns = read_columns(write(content), ["a"])
    np.testing.assert_array_equal(private_numbers(columns, 1), expected)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("a,c", "must have a header with the 2 columns 'a', 'b'. Got none named 'b'"),
        ("987654,321", "Got none named 'a', 'b'"),
        ("a,b,b", "must name each column once. Got 'b' twice"),
        ("", "Got none named 'a', 'b'"),
    ],
)
def test_a_header_is_refused_without_its_cells(header, message, write):
    with pytest.raises(ValueError, match="rows.csv must ") as caught:
        read_columns(write(f"{header}\n1,2,3\n"), ["a", "b"])
    assert message in str(caught.value)
    assert "987654" not in str(caught.value)


def test_a_header_of_too_many_columns_is_refused(write):
    with pytest.raises(ValueError, match="must have at most 10000 columns. Got 10001"):
        read_header(write("a," * 10_000))


@pytest.mark.parametrize(
    ("cell", "decimal", "number"),
    [
        ("1.5", ".", 1.5),
        (" -2e3 ", ".", -2000.0),
        ("1,5", ",", 1.5),
        ("1.5", ",", np.nan),
        ("1,5", ".", np.nan),
        ("1_0", ".", np.nan),
        ("nan", ".", np.nan),
        ("-inf", ".", np.nan),
        ("1e999", ".", np.nan),
        ("", ".", np.nan),
        ("0x10", ".", np.nan),
    ],
)
def test_a_cell_is_a_finite_number_or_nan(cell, decimal, number):
    np.testing.assert_equal(parse_number(cell, decimal), number)
