"""Commands that value and clean tables: files in and out, exit codes, messages."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from skvalue import KNNShapleyValuer
from skvalue.datasets import flip_labels
from tests.audit.command_line import command
from tests.audit.tables import people_table, text_of

pd = pytest.importorskip("pandas")
NO_ARROW = pytest.mark.skipif(not find_spec("pyarrow"), reason="no pyarrow")
FORMATS = [
    ".csv",
    ".tsv",
    pytest.param(".parquet", marks=NO_ARROW),
    pytest.param(".arrow", marks=NO_ARROW),
    pytest.param(".feather", marks=NO_ARROW),
]


def write(frame, path):
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_feather(path)


def read(path):
    if path.suffix == ".csv":
        return pd.read_csv(path)
    if path.suffix == ".tsv":
        return pd.read_csv(path, sep="\t")
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return pd.read_feather(path)


@pytest.fixture(scope="module")
def people():
    """A table of 140 people, and which labels are wrong."""
    rng = np.random.default_rng(0)
    job = rng.choice(["care", "tech"], 140)
    age = rng.normal(40, 10, 140).round(1)
    label = np.where(age + 20 * (job == "tech") > 50, "high", "low")
    label, wrong = flip_labels(label, 0.1, random_state=0)
    frame = pd.DataFrame({"age": age, "job": job, "visits": 1, "label": label})
    frame.loc[::20, "age"] = np.nan
    return frame, wrong


@pytest.fixture
def train(people, tmp_path):
    """The file of 100 people; the others are in val.csv."""
    frame, _ = people
    frame[:100].to_csv(tmp_path / "train.csv", index=False)
    frame[100:].to_csv(tmp_path / "val.csv", index=False)
    return tmp_path / "train.csv"


# Values -------------------------------------------------------------------------------


class TestGroups:
    """Organisations sell rows to a buyer, whose validation points have no owner."""

    @pytest.fixture
    def market(self, people, tmp_path):
        """A folder with rows of three owners, and points without owners."""
        frame, _ = people
        rows = frame[:80].assign(org=np.arange(80) % 3, note="x")
        rows["org"] = rows["org"].map({0: "Ann", 1: "Ben", 2: "Eve"})
        rows.to_csv(tmp_path / "rows.csv", index=False)
        frame[80:].to_csv(tmp_path / "points.csv", index=False)
        return tmp_path

    def value(self, market, options):
        """The values that a command writes."""
        code = command(
            f"value {market}/rows.csv --target label --groups org --ignore note "
            f"--validation {market}/points.csv -o {market}/out.csv {options}"
        )
        assert code == 0
        return pd.read_csv(market / "out.csv")

    @pytest.mark.parametrize(
        "options",
        ["--method knn", "--method data-shapley", "--method tknn --epsilon 3"],
    )
    def test_points_need_no_owners(self, market, options):
        values = self.value(market, options)
        assert list(values["group"]) == ["Ann", "Ben", "Eve"]

    def test_owners_of_points_are_no_features(self, market):
        without = self.value(market, "--method knn")
        frame = pd.read_csv(market / "points.csv").assign(org="Ann", note="y")
        frame.to_csv(market / "points.csv", index=False)
        pd.testing.assert_frame_equal(self.value(market, "--method knn"), without)

    def test_rows_without_owners_are_refused(self, market, capsys):
        frame = pd.read_csv(market / "rows.csv").drop(columns="org")
        frame.to_csv(market / "rows.csv", index=False)
        code = command(
            f"value {market}/rows.csv --target label --groups org "
            f"--validation {market}/points.csv -o {market}/out.csv"
        )
        assert code == 2
        assert "--groups must be a column of" in capsys.readouterr().err

    def test_errors_of_points_are_beside_those_of_the_computation(self, market):
        values = self.value(market, "--method data-shapley")
        assert (values["error"] == 0).all()  # all coalitions are trained
        assert values["validation_error"].between(0.002, 0.05).all()

    @pytest.mark.slow
    def test_error_over_points_is_the_deviation_over_samples_of_points(self, tmp_path):
        rng = np.random.default_rng(0)

        def draw(n):
            x = rng.normal(size=n)
            label = np.where(x + rng.normal(size=n) > 0, "u", "v")
            return pd.DataFrame({"x": x, "label": label, "org": np.arange(n) % 3})

        rows = draw(60)
        wrong = rows["org"] == 0
        rows.loc[wrong, "label"] = rows["label"].map({"u": "v", "v": "u"})
        rows.to_csv(tmp_path / "rows.csv", index=False)
        samples = []
        for _ in range(12):
            draw(200).drop(columns="org").to_csv(tmp_path / "points.csv", index=False)
            code = command(
                f"value {tmp_path}/rows.csv --target label --groups org --validation "
                f"{tmp_path}/points.csv --method data-shapley -o {tmp_path}/out.csv"
            )
            assert code == 0
            samples.append(pd.read_csv(tmp_path / "out.csv"))
        deviation = np.std([sample["value"] for sample in samples], axis=0, ddof=1)
        stated = np.mean([sample["validation_error"] for sample in samples], axis=0)
        assert 0.5 < np.mean(stated) / np.mean(deviation) < 2

    def test_empty_utility_takes_away_what_frequencies_earn(self, market):
        default = self.value(market, "--method data-shapley")["value"]
        prior = self.value(market, "--method data-shapley --empty-utility prior")
        frequencies = pd.read_csv(market / "points.csv")["label"].value_counts()
        expected = 0.5 - frequencies.max() / frequencies.sum()
        change = prior["value"].sum() - default.sum()
        assert change == pytest.approx(expected)
        number = self.value(market, "--method data-shapley --empty-utility 0.25")
        assert number["value"].sum() - default.sum() == pytest.approx(0.25)

    def test_scoring_is_that_of_the_values(self, market):
        default = self.value(market, "--method data-shapley")["value"]
        loss = self.value(market, "--method data-shapley --scoring neg_log_loss")
        assert np.abs(loss["value"] - default).max() > 0.01

    @pytest.mark.parametrize("option", ["--scoring accuracy", "--empty-utility prior"])
    def test_a_method_that_does_not_take_an_option_is_refused(
        self, market, option, capsys
    ):
        name = option.split()[0]
        code = command(
            f"value {market}/rows.csv --target label --groups org --method data-oob "
            f"--ignore note -o {market}/out.csv {option}"
        )
        assert code == 2
        err = capsys.readouterr().err
        assert f"{name} must be used with --method" in err
        assert "data-shapley" in err


@pytest.mark.parametrize("kind", FORMATS)
def test_values_are_written_in_the_format_of_the_output(kind, people, tmp_path, capsys):
    frame, wrong = people
    table = tmp_path / f"train{kind}"
    out = tmp_path / f"values{kind}"
    write(frame, table)
    assert command(f"value {table} --target label -o {out}") == 0
    values = read(out)
    assert values.columns.tolist() == ["row", "value"]
    assert values["row"].tolist() == list(range(2, 142))
    assert values["value"][wrong].mean() < 0 < values["value"][~wrong].mean()
    printed = capsys.readouterr().out
    assert "140 rows, 3 columns, target label" in printed
    assert "number age: scaled" in printed
    assert "constant visits: left out" in printed
    assert f"{out}: the values of 140 rows by knn." in printed


@pytest.mark.parametrize("kind", FORMATS)
def test_rows_of_low_value_are_dropped_in_any_format(kind, people, tmp_path):
    table = tmp_path / f"train{kind}"
    values = tmp_path / f"values{kind}"
    clean = tmp_path / f"clean{kind}"
    write(people[0], table)
    assert command(f"value {table} --target label -o {values}") == 0
    code = command(
        f"clean {table} --target label --drop 14 -o {clean} --method knn "
        "--no-keep-classes"
    )
    assert code == 0
    order = np.argsort(read(values)["value"], kind="stable")
    expected = read(table).iloc[np.sort(order[14:])].reset_index(drop=True)
    assert read(clean).dtypes.astype(str).tolist() == (
        read(table).dtypes.astype(str).tolist()
    )
    pd.testing.assert_frame_equal(read(clean), expected)


def test_values_are_those_of_the_valuer(train, people, tmp_path):
    frame = people[0].fillna({"age": 40.0})
    frame[:100].to_csv(train, index=False)
    frame[100:].to_csv(tmp_path / "val.csv", index=False)
    out = tmp_path / "values.csv"
    line = f"value {train} --target age -o {out} --validation {tmp_path}/val.csv"
    assert command(line) == 0
    X = pd.get_dummies(frame[["job", "label"]]).to_numpy(float)
    y = frame["age"].to_numpy()
    exact = KNNShapleyValuer().fit(X[:100], y[:100], X_val=X[100:], y_val=y[100:])
    np.testing.assert_allclose(read(out)["value"], exact.values_, atol=1e-12)


def test_methods_are_listed_with_their_summaries(capsys):
    assert command("methods") == 0
    lines = capsys.readouterr().out.splitlines()
    names = {line.split()[0] for line in lines}
    assert {"knn", "tknn", "data-oob", "data-shapley", "influence"} <= names
    for line in lines:
        assert line.endswith((".", ". Private with --epsilon."))


@pytest.mark.parametrize("method", ["tknn", "influence"])
def test_a_method_gives_finite_values(method, train, tmp_path):
    out = tmp_path / "values.csv"
    assert command(f"value {train} --target label --method {method} -o {out}") == 0
    assert np.isfinite(read(out)["value"]).all()


# Private values -----------------------------------------------------------------------


@pytest.fixture
def private_line(train, tmp_path):
    """The command of private values, without method and validation points."""
    return f"value {train} --target label -o {tmp_path}/values.csv --epsilon 1"


def test_private_values_need_a_private_method(private_line, capsys):
    assert command(private_line) == 2
    message = "--epsilon must be used with --method tknn. Got knn."
    assert message in capsys.readouterr().err


def test_private_values_need_validation_points(private_line, capsys):
    assert command(f"{private_line} --method tknn") == 2
    assert "--epsilon must be used with --validation" in capsys.readouterr().err


def test_rows_that_are_equal_by_chance_are_left_out_and_the_option_decides(
    private_line, tmp_path
):
    line = f"{private_line} --method tknn --validation {tmp_path}/val.csv"
    n_rows = []
    for option in ("", " --equal-rows"):
        assert command(line + option) == 0
        n_rows.append(len(read(tmp_path / "values.csv")))
    assert n_rows == [95, 100]  # five of the rows equal four public ones


def test_private_values_state_their_guarantee_and_errors(
    private_line, tmp_path, capsys
):
    options = f"--method tknn --validation {tmp_path}/val.csv --equal-rows"
    assert command(f"{private_line} {options} --delta 1e-4") == 0
    out = capsys.readouterr().out
    encoded = "The columns are encoded by the rows of --validation, which are public."
    assert encoded in out
    assert "(1, 0.0001)-joint differential privacy" in out
    columns = read(tmp_path / "values.csv").columns.tolist()
    assert columns == ["row", "value", "error"]


def test_private_columns_are_encoded_by_public_rows(
    private_line, people, tmp_path, capsys
):
    """What is done to a column depends on the validation points alone."""
    points = tmp_path / "val.csv"
    people[0][100:].assign(job="care").to_csv(points, index=False)
    options = f"--method tknn --equal-rows --validation {points}"
    assert command(f"{private_line} {options}") == 0
    assert "constant job, visits: left out" in capsys.readouterr().out


# Clean tables -------------------------------------------------------------------------


@pytest.fixture
def words(tmp_path):
    """A file with strings in quotes, and its rows."""
    rows = [f'{i}.50,0{i % 7},"a, b",{"yes" if i % 2 else "no"}' for i in range(20)]
    table = tmp_path / "train.csv"
    table.write_text("\n".join(["size,code,words,label", *rows, ""]))
    return table, rows


def test_kept_rows_have_the_text_of_the_file(words, tmp_path, capsys):
    table, rows = words
    clean = tmp_path / "clean.csv"
    assert command(f"clean {table} --target label --drop 0.1 -o {clean}") == 0
    assert f"{clean}: 18 of 20 rows" in capsys.readouterr().out
    header, *kept = clean.read_text().splitlines()
    assert header == "size,code,words,label"
    assert len(kept) == 18
    assert set(kept) < set(rows)


def test_dropped_rows_are_listed_with_their_reason(words, tmp_path):
    table, _ = words
    report = tmp_path / "removed.csv"
    code = command(
        f"clean {table} --target label --drop 0.1 -o {tmp_path}/clean.csv "
        f"--report {report}"
    )
    assert code == 0
    removed = pd.read_csv(report, dtype=str)
    numbers = removed["dropped_row"].astype(int) - 2
    assert removed["size"].tolist() == [f"{number}.5" for number in numbers]
    assert removed["code"].tolist() == [f"0{int(number) % 7}" for number in numbers]
    assert removed["dropped_reason"][0].startswith("rank 1 of 20 values")


def test_a_table_of_which_no_row_is_dropped_keeps_its_text(words, tmp_path):
    table, _ = words
    clean = tmp_path / "clean.csv"
    report = tmp_path / "removed.csv"
    line = f"clean {table} --target label --drop 0 -o {clean} --report {report}"
    assert command(line) == 0
    assert len(read(report)) == 0
    assert clean.read_text() == table.read_text()


def test_a_table_may_have_columns_of_an_earlier_report(tmp_path):
    table = tmp_path / "train.csv"
    rows = [f"{i % 9},{i},{'yes' if i % 2 else 'no'}" for i in range(20)]
    table.write_text("\n".join(["a,dropped_row,label", *rows]))
    code = command(
        f"clean {table} --target label --method knn --drop 4 -o {tmp_path}/clean.csv "
        f"--report {tmp_path}/report.csv"
    )
    assert code == 0
    report = read(tmp_path / "report.csv")
    assert (report["dropped_row"] - 2).tolist() == report["dropped_row.1"].tolist()


@pytest.fixture
def clean_line(train, tmp_path):
    return f"clean {train} --target label -o {tmp_path}/clean.csv"


def test_the_number_of_rows_to_drop_is_chosen_by_cross_validation(clean_line):
    assert command(f"{clean_line} --drop auto --method knn") == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "--drop significant needs --validation and another"),
        ("--method knn", "--drop significant needs --validation: it tests"),
    ],
)
def test_significant_values_need_validation_points(
    options, message, clean_line, capsys
):
    assert command(f"{clean_line} --drop significant {options}") == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("drop", ["many", "1.5", "-1"])
def test_a_number_that_drops_no_rows_is_refused_before_the_table_is_read(
    drop, clean_line, capsys
):
    with pytest.raises(SystemExit):
        command(f"{clean_line} --drop {drop}")
    message = f"or one of negative, significant, auto. Got {drop!r}"
    assert message in capsys.readouterr().err


@pytest.fixture
def rare_line(tmp_path):
    """The command that cleans a table with a rare class of low values."""
    table = people_table()
    table["kauf"] = ["selten" if i % 15 == 0 else "ja" for i in range(120)]
    (tmp_path / "t.csv").write_text(text_of(table))
    return f"clean {tmp_path}/t.csv --target kauf -o {tmp_path}/o.csv --method knn"


def test_clean_keeps_a_class_in_which_few_labels_can_be_wrong(rare_line, tmp_path):
    assert command(rare_line) == 0
    kept = pd.read_csv(tmp_path / "o.csv")
    assert (kept["kauf"] == "selten").sum() >= 7


def test_a_number_of_rows_is_what_is_dropped(rare_line, capsys):
    assert command(f"{rare_line} --drop 4 --force") == 0
    assert "116 of 120 rows" in capsys.readouterr().out


@pytest.fixture
def wrong_line(tmp_path):
    """The command that cleans a table of 200 rows, 20 labels of which are wrong."""
    rng = np.random.default_rng(0)
    truth = np.repeat(["ja", "nein"], 100)
    labels = truth.copy()
    labels[100:120] = "ja"
    columns = rng.normal(size=(200, 2)) + 6 * (truth == "nein")[:, None]
    frame = pd.DataFrame(columns, columns=["a", "b"]).assign(kauf=labels)
    frame.to_csv(tmp_path / "t.csv", index=False)
    return f"clean {tmp_path}/t.csv --target kauf -o {tmp_path}/o.csv --seed 0"


def test_clean_says_how_many_rows_of_which_class_it_drops(wrong_line, tmp_path, capsys):
    assert command(wrong_line) == 0
    kept = pd.read_csv(tmp_path / "o.csv")
    n_dropped = 200 - len(kept)
    printed = capsys.readouterr().out
    line = f"{len(kept)} of 200 rows; of the others another label is more probable."
    assert line in printed
    assert f"  ja: {n_dropped} of 120 rows are dropped; by held-out" in printed
    assert (kept["kauf"] == "nein").sum() == 80
    assert 1 <= n_dropped <= 20


def test_clean_refuses_to_empty_a_class(rare_line, tmp_path, capsys):
    assert command(f"{rare_line} --drop 0.1") == 2
    message = "the class 'selten' would lose 7 of its 8 rows: nothing was"
    assert message in capsys.readouterr().err
    assert not (tmp_path / "o.csv").exists()


def test_clean_empties_a_class_by_force(rare_line, tmp_path, capsys):
    assert command(f"{rare_line} --drop 0.1 --force") == 0
    assert "stratify" not in capsys.readouterr().err
    assert (tmp_path / "o.csv").exists()


def test_the_detector_takes_no_validation_points(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"{i},{'ab'[i % 2]}" for i in range(20))
    for name in ("train.csv", "val.csv"):
        Path(name).write_text(f"a,label\n{rows}")
    line = "clean train.csv --target label -o out.csv --validation val.csv"
    assert command(line) == 2
    assert "--validation needs a --method" in capsys.readouterr().err
    assert not Path("out.csv").exists()


# Bad input ----------------------------------------------------------------------------

KEYS = "k,label\n" + "".join(f"k{i},{i % 2}\n" for i in range(60))
MANY = ",".join(f"c{i}" for i in range(10_001))
BAD = {
    "line 3 must have 2 fields, as most lines have (separated by ',').": (
        "a,label\n1,x\n2\n"
    ),
    "Got 3. Mend it, or pass --sep.": "a,label\n1,x\n2,y,3\n",
    "a quote is not closed, if fields are separated by ','.": 'a,label\n1,x\n2,"y\n',
    "the file must have a header and rows. Got none": "",
    "the file must have at least one row. Got a header alone.": "a,label\n",
    "must name every column once. Got 'a' twice. Rename one, or pass --no": (
        "a,a,label\n1,2,x\n"
    ),
    "--target must be a column of the file: a, b. Got 'label'": "a,b\n1,x\n2,y\n",
    "no separator (comma, semicolon, tab, |) gives two columns. Pass --sep.": (
        "label\nx\ny\n"
    ),
    "at least two values. Got 'label', which holds 1.5 only.": (
        "a,label\n1,1.5\n1,1.5\n2,1.5\n"
    ),
    "--target must be a column with at least one entry. Got 'label'": (
        "a,label\n1,\n2,\n"
    ),
    "the table must have a column that neither identifies": KEYS,
    "a table of at most 10000 columns. Got 10002": f"{MANY},label\n{MANY},x\n",
}


@pytest.mark.parametrize("message", BAD, ids=lambda message: message[:40])
@pytest.mark.parametrize("name", ["value", "clean"])
def test_a_bad_table_is_one_sentence_and_leaves_no_file(
    name, message, tmp_path, capsys
):
    table = tmp_path / "train.csv"
    table.write_text(BAD[message])
    assert command(f"{name} {table} --target label -o {tmp_path}/out.csv") == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.startswith("error: ")
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == [table]


@pytest.mark.parametrize(
    "line",
    [
        "check HERE/train.csv --fail-on-findings question",
        "value HERE/train.csv -o HERE/out.csv --validation HERE/val.csv",
    ],
)
def test_a_target_of_one_value_is_refused(line, tmp_path, capsys):
    unlabelled = "".join(f"{i},\n" for i in range(59))
    (tmp_path / "train.csv").write_text(f"a,label\n1,x\n{unlabelled}")
    (tmp_path / "val.csv").write_text("a,label\n1,x\n1,y\n")
    assert command(f"{line.replace('HERE', str(tmp_path))} --target label") == 2
    message = "--target must be a column of at least two values"
    assert message in capsys.readouterr().err


# Table, output, message.
BAD_FILES = [
    ("bytes.csv", "out.csv", "the encoding is unknown"),
    ("none.csv", "out.csv", "the table must be a file that exists"),
    ("folder.csv", "out.csv", "the folder must hold one folder for each label"),
    ("train.csv", "out.xls", "--output must end in one of .csv,"),
    ("train.csv", "none/out.csv", "--output must be in a folder that can be written"),
    ("train.csv", "train.csv", "--output must be a file that is not used otherwise"),
    ("train.csv", "folder.csv", "--output must be a file. Got"),
]


@pytest.mark.parametrize(("table", "output", "message"), BAD_FILES)
def test_bad_files_are_refused_and_nothing_is_written(
    table, output, message, train, tmp_path, capsys
):
    (tmp_path / "bytes.csv").write_bytes(b"a,label\n\xff,x\n")
    (tmp_path / "folder.csv").mkdir()
    line = f"value {tmp_path}/{table} --target label -o {tmp_path}/{output}"
    assert command(line) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()
    assert len(read(train)) == 100


@NO_ARROW
def test_a_damaged_parquet_file_is_refused(tmp_path, capsys):
    table = tmp_path / "broken.parquet"
    table.write_bytes(b"PAR1")
    assert command(f"value {table} --target a -o {tmp_path}/o.csv") == 2
    message = "the file must be a whole Parquet or Arrow file. Got"
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "age,label\n3,high\n",
            "--validation must have the columns of the table. Got none named",
        ),
        (
            "age,job,visits,label\nx,care,1,high\n",
            "must have numbers in the column 'age'",
        ),
        (
            "age,job,visits\n3,care,1\n",
            "--target must be a column of the file: age, job",
        ),
    ],
)
def test_validation_points_without_the_columns_of_the_table_are_refused(
    text, message, train, tmp_path, capsys
):
    points = tmp_path / "other.csv"
    points.write_text(text)
    line = f"value {train} --target label -o {tmp_path}/out.csv --validation {points}"
    assert command(line) == 2
    assert message in capsys.readouterr().err


def test_nothing_is_written_if_two_outputs_are_one_file(train, tmp_path, capsys):
    clean = tmp_path / "clean.csv"
    clean.write_text("earlier")
    assert command(f"clean {train} --target label -o {clean} --report {clean}") == 2
    message = "--report must be a file that is not used otherwise"
    assert message in capsys.readouterr().err
    assert clean.read_text() == "earlier"


@pytest.mark.parametrize("line", ["worth", "value", ""])
def test_a_usage_error_is_one_sentence(line, capsys):
    with pytest.raises(SystemExit) as ended:
        command(line)
    assert ended.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
