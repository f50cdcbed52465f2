"""Files that hold one table in many styles, no table, or an unclear one."""

import csv
import io

import numpy as np
import pandas as pd

CITIES = [
    "München", "Köln", "Zürich", "Besançon", "Orléans", "Málaga", "Århus", "Paris",
    "Rome", "Oslo", "Saint-Étienne", "Düsseldorf", "La Coruña", "Bern",
]  # fmt: skip
ENCODINGS = ["utf-8", "utf-8-sig", "cp1252", "latin-1", "utf-16", "utf-16-le"]
DATES = [
    "%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%b-%y", "%Y%m%d", "%d.%m.%y",
    "%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M",
]  # fmt: skip
FLAGS = [
    ("yes", "no"), ("ja", "nein"), ("True", "False"), ("1", "0"), ("WAHR", "FALSCH"),
    ("oui", "non"),
]  # fmt: skip
MISSING = ["", "n/a", "NA", "-", "?", "k.A.", "NULL", "#NV", "999", "-1"]


def make_table(rng, n=200):
    """Column -> its true entries, of ten columns."""
    minutes = rng.integers(0, 1200, n) * 1440 + rng.integers(0, 1440, n)
    count = rng.integers(1, 60, n).astype(float)
    count[rng.random(n) < 0.05] = np.nan
    words = rng.choice(["call back", "ok", 'says "no"', "two\nlines", "a; b, c"], n)
    ids = [f"K-{i:04d}" for i in rng.permutation(n)]
    codes = [*range(1000, 1020), *rng.integers(10000, 99999, n - 20)]
    return {
        "id": ids,
        "plz": [f"{code:05d}" for code in codes],
        "amount": np.round(rng.lognormal(8, 1.2, n), 2),
        "rate": np.round(rng.gamma(2, 2, n), 2),
        "count": count,
        "day": pd.Timestamp("2021-01-01") + pd.to_timedelta(minutes, unit="min"),
        "flag": rng.random(n) < 0.4,
        "city": rng.choice(CITIES, n),
        "note": [
            f"{word} {end}"
            for word, end in zip(words, rng.choice(["soon", "später", "x|y"], n))
        ],
        "label": rng.choice(["01", "02", "10"], n),
    }


def draw_style(rng):
    """How a table is written."""
    decimal = str(rng.choice([".", ","]))
    other = "," if decimal == "." else "."
    groups = ["", other, " ", "'", "\u00a0"]
    return {
        "sep": str(rng.choice([",", ";", "\t", "|"])),
        "decimal": decimal,
        "thousands": str(rng.choice(groups, p=[0.4, 0.3, 0.1, 0.1, 0.1])),
        "encoding": str(rng.choice(ENCODINGS)),
        "date": str(rng.choice(DATES)),
        "flag": FLAGS[rng.integers(len(FLAGS))],
        "missing": str(rng.choice(MISSING)),
        "quote": bool(rng.random() < 0.3),
        "newline": str(rng.choice(["\r\n", "\n"])),
        "currency": str(rng.choice(["", "€", "$ "], p=[0.8, 0.1, 0.1])),
        "spaces": bool(rng.random() < 0.2),
        "first": bool(rng.random() < 0.05),
    }


def number(value, decimal, thousands):
    text = f"{value:,.2f}" if thousands else f"{value:.2f}"
    return text.replace(",", "T").replace(".", decimal).replace("T", thousands)


def write_table(table, style):
    """Bytes of the table in a style."""
    out = io.StringIO()
    quoting = csv.QUOTE_ALL if style["quote"] else csv.QUOTE_MINIMAL
    writer = csv.writer(
        out, delimiter=style["sep"], quoting=quoting, lineterminator=style["newline"]
    )
    writer.writerow(table)
    columns = [
        [entry_text(name, entry, style) for entry in entries]
        for name, entries in table.items()
    ]
    writer.writerows(zip(*columns))
    text = out.getvalue()
    if style["first"]:
        text = f"sep={style['sep']}{style['newline']}{text}"
    if style["encoding"] == "latin-1":
        text = text.replace("€", "EUR ")
    return text.encode(style["encoding"])


def entry_text(name, entry, style):
    """An entry of a column as it is written in a style."""
    if name == "amount":
        amount = number(entry, style["decimal"], style["thousands"])
        return f"{style['currency']}{amount}"
    if name == "rate":
        return number(entry, style["decimal"], "")
    if name == "count":
        return style["missing"] if np.isnan(entry) else str(int(entry))
    if name == "day":
        return entry.strftime(style["date"])
    if name == "flag":
        yes, no = style["flag"]
        return yes if entry else no
    if name == "city" and style["spaces"] and len(entry) == 5:
        return f"{entry} "
    return str(entry)


def is_right(name, entries, column, style):
    """Whether a column that was read has the true entries.

    Of flags it has the same groups of rows.
    """
    types = pd.api.types
    if name in ("amount", "rate", "count"):
        if not types.is_numeric_dtype(column):
            return False
        return np.allclose(column.to_numpy(float), entries, equal_nan=True)
    if name == "day":
        if not types.is_datetime64_any_dtype(column):
            return False
        unit = "min" if "%H" in style["date"] else "D"
        days = pd.Series(entries).dt.floor(unit)
        return bool((column.reset_index(drop=True) == days).all())
    if name == "flag":
        codes = pd.factorize(column)[0]
        return len(set(codes)) == 2 and len(set(zip(codes, entries))) == 2
    texts = column.astype(str).str.replace("\r\n", "\n")
    return texts.tolist() == [str(entry).strip() for entry in entries]


def lines(header, row, n=60):
    """A text of a header and rows, which `row` makes of their number."""
    return f"{header}\n" + "".join(f"{row(i)}\n" for i in range(n))


def _ab(i):
    return "ab"[i % 2]


CITY_LINES = lines("a,b,y", lambda i: f"{CITIES[i % 14]},{i},{_ab(i)}", 70)
_SLAVIC = ["Łódź", "Kraków", "Gdańsk", "Częstochowa", "Wrocław", "Poznań"]
_RUSSIAN = ["Москва", "Казань", "Омск"]

# Name -> content, and what must happen: "refused", a column that must be asked about,
# or what a column must hold.
HOSTILE = {
    "days up to 12": (
        lines("d,x,y", lambda i: f"{i % 12 + 1:02d}/{i % 9 + 1:02d}/2024,{i},{_ab(i)}"),
        "'d'",
    ),
    "1.234 everywhere": (
        lines("v,x,y", lambda i: f"{i % 8 + 1}.{100 + 13 * i % 900},{i},{_ab(i)}"),
        "'v'",
    ),
    "1,234 in quotes": (
        lines("v,x,y", lambda i: f'"{i % 8 + 1},{100 + 13 * i % 900}",{i},{_ab(i)}'),
        "'v'",
    ),
    "dates in two formats": (
        lines(
            "d,x,y",
            lambda i: (
                f"2024-01-{i % 28 + 1:02d},{i},a"
                if i % 2
                else f"{i % 28 + 1}.01.2024,{i},b"
            ),
        ),
        "'d'",
    ),
    "a field too many": (
        lines("a,b,y", lambda i: f"{i},{i * 2},{_ab(i)}{',9' if i == 30 else ''}"),
        "refused",
    ),
    "title lines": (
        "Report of May\n\n" + lines("a,b,y", lambda i: f"{i},{i},{_ab(i)}"),
        "refused",
    ),
    "no header, numbers": (
        lines("0,1.5,a", lambda i: f"{i},{i * 1.5},{_ab(i)}").replace("y", "a"),
        "refused",
    ),
    "no header, texts": (
        lines("x,u,a", lambda i: f"{'xyz'[i % 3]},{'uv'[i % 2]},{_ab(i)}"),
        "refused",
    ),
    "a name twice": (lines("a,a,y", lambda i: f"{i},{i * 2},{_ab(i)}"), "refused"),
    "a quote not closed": (
        lines("a,b,y", lambda i: f'{i},"{i}{chr(34) * (i != 30)},{_ab(i)}'),
        "refused",
    ),
    "one column": (lines("a", str), "refused"),
    "empty": ("", "refused"),
    "header only": ("a,b,y\n", "refused"),
    "comma and semicolon": (
        lines("a;b,c;y", lambda i: f"{i};{i},{i};{_ab(i)}"),
        "decimal comma in b,c",
    ),
    "two separators alike": (lines("a;b,y", lambda i: f"{i};{i},{_ab(i)}"), "refused"),
    "decimal comma without quotes": (
        lines("a,b,y", lambda i: f"{i},5,{i},25,a"),
        "refused",
    ),
    "kg and g": (
        lines(
            "w,x,y",
            lambda i: (f"{i} kg" if i % 2 else f"{i * 100} g") + f",{i},{_ab(i)}",
        ),
        "'w'",
    ),
    "negative in brackets": (
        lines("v,x,y", lambda i: f'"({i + 1},234.00)",{i},{_ab(i)}'),
        "'v'",
    ),
    "a minus behind": (lines("v,x,y", lambda i: f"{i}.5-,{i},{_ab(i)}"), "'v'"),
    "1E5 codes": (lines("v,x,y", lambda i: f"{i % 10}E{i % 7},{i},{_ab(i)}"), "text"),
    "20 digits": (lines("v,x,y", lambda i: f"{10**19 + i},{i},{_ab(i)}"), "text"),
    "words among numbers": (
        lines(
            "v,x,y", lambda i: f"{i if i % 3 else ['low', 'mid'][i % 2]},{i},{_ab(i)}"
        ),
        "'v'",
    ),
    "times": (lines("t,x,y", lambda i: f"{i % 24:02d}:{i:02d},{i},{_ab(i)}"), "'t'"),
    "999": (
        lines("v,x,y", lambda i: f"{i % 40 + 20 if i % 9 else 999},{i},{_ab(i)}", 90),
        "'v'",
    ),
    "-1": (
        lines("v,x,y", lambda i: f"{i % 40 + 20 if i % 9 else -1},{i},{_ab(i)}", 90),
        "'v'",
    ),
    "German months": (
        lines("d,x,y", lambda i: f"{i % 28 + 1}. März 2024,{i},{_ab(i)}"),
        "text",
    ),
    "cp850": (CITY_LINES.encode("cp850"), "refused"),
    "Mac": (CITY_LINES.encode("mac_roman"), "refused"),
    "latin-9": (CITY_LINES.encode("iso-8859-15"), "cities"),
    "cp1250": (
        lines("a,b,y", lambda i: f"{_SLAVIC[i % 6]},{i},a").encode("cp1250"),
        "refused",
    ),
    "cp1251": (
        lines("a,b,y", lambda i: f"{_RUSSIAN[i % 3]},{i},a").encode("cp1251"),
        "refused",
    ),
    "two encodings": (CITY_LINES.encode() + "Köln,7,a\n".encode("cp1252"), "refused"),
    "read as cp1252 once": (
        CITY_LINES.encode().decode("cp1252", "ignore").encode(),
        "letters",
    ),
    "a Parquet file": (b"PAR1....", "refused"),
    "an Excel file": (b"PK\x03\x04....", "refused"),
    "UTF-16 without a mark": (CITY_LINES.encode("utf-16-le"), "cities"),
}
