"""The commands of parties and of their mediator."""

import json
from pathlib import Path

import numpy as np
import pytest
from full_disk import full_disk

from skvalue.collaborative import MediatorModel, NamedRelease, NamedReward, PartyScores
from skvalue.privacy import Ledger, Release
from tests.audit.command_line import command
from tests.audit.folders import patients

GUARANTEE = "--epsilon 4 --delta 1e-5"
# Lines that hold no row of an age, metres and a label.
BAD_LINES = [
    "nan,1.7,yes", "inf,1.7,yes", "x,1.7,yes", "50,1.7,maybe", "50,1.7",
    "50,1.7,yes,9", '"50,1.7,yes', "1_0,1.7,yes", "1e999,1.7,no", "50,,no",
    "\x00,1.7,no", "50,1.7,", "9e307,-9e307,no", ",,", "yes,1.7,50",
]  # fmt: skip


def write(path, columns, separator=","):
    lines = [separator.join(columns)]
    for row in zip(*columns.values()):
        lines.append(separator.join(map(str, row)))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with public rows, points, a model, and two parties with releases."""
    folder = tmp_path_factory.mktemp("parties")
    rng = np.random.default_rng(0)
    write(folder / "public.csv", patients(rng, 200))
    write(folder / "validation.csv", patients(rng, 100))
    write(folder / "a.csv", patients(rng, 300))
    write(folder / "b.csv", patients(rng, 300, flipped=True))
    line = f"party model {folder}/public.csv --target cured --positive yes"
    assert command(f"{line} -o {folder}/model.json") == 0
    for name in "ab":
        code = command(
            f"party release {folder}/model.json {folder}/{name}.csv --party {name} "
            f"{GUARANTEE} -o {folder}/{name}.json"
        )
        assert code == 0
    return folder


@pytest.fixture(scope="module")
def score(made):
    """The words of a score of both parties."""
    return (
        f"party score {made}/model.json {made}/a.json {made}/b.json --validation "
        f"{made}/validation.csv"
    )


@pytest.fixture(scope="module")
def rewards(made):
    """The folder of the reward of the honest party alone."""
    files = f"{made}/model.json {made}/a.json --validation {made}/validation.csv"
    assert command(f"party reward {files} -o {made}/rewards") == 0
    return made / "rewards"


@pytest.fixture
def release(made, tmp_path):
    """The words of a release of rows.csv in a folder of the test."""
    return (
        f"party release {made}/model.json {tmp_path}/rows.csv --party c {GUARANTEE} "
        f"-o {tmp_path}/c.json"
    )


def test_scores_are_printed_and_written(made, score, capsys):
    assert command(f"{score} -o {made}/scores.json --budget 100 --unit 0.01") == 0
    printed = capsys.readouterr().out
    assert "100.00" in printed
    assert printed.index(" a ") < printed.index(" b ")
    scores = PartyScores.from_json((made / "scores.json").read_text())
    assert [party["party"] for party in scores.parties] == ["a", "b"]
    assert scores.n_validation == 100


def test_a_column_of_another_unit_changes_no_release(made, tmp_path):
    fingerprints = []
    for factor in (1, 1000):
        rng = np.random.default_rng(0)
        columns = patients(rng, 200)
        columns["metres"] = columns["metres"] * factor
        write(tmp_path / "public.csv", columns)
        line = f"party model {tmp_path}/public.csv --target cured -o {tmp_path}/m.json"
        assert command(line) == 0
        model = MediatorModel.from_json((tmp_path / "m.json").read_text())
        (tmp_path / "m.json").unlink()
        rows = model.transform(np.column_stack([columns["age"], columns["metres"]]))
        fingerprints.append(rows)
    np.testing.assert_allclose(*fingerprints)


class TestRowsOfAParty:
    """Rows are read by the header and the public model; none is refused."""

    def test_columns_are_taken_by_name(self, made, tmp_path, release):
        columns = patients(np.random.default_rng(3), 50)
        columns = {"x": ["text"] * 50, **dict(reversed(columns.items()))}
        write(tmp_path / "rows.csv", columns)
        assert command(f"{release} --notes {tmp_path}/notes.txt") == 0
        assert (tmp_path / "notes.txt").read_text().startswith("0 of 50 rows could not")

    @pytest.mark.parametrize(
        ("header", "missing"),
        [("age,cured", "'metres'"), ("1.5,1.7,yes", "'age', 'metres', 'cured'")],
    )
    def test_a_missing_column_is_refused_by_its_name_and_the_file(
        self, tmp_path, release, header, missing, capsys
    ):
        (tmp_path / "rows.csv").write_text(f"{header}\n2.5,1.8,no\n")
        assert command(release) == 2
        err = capsys.readouterr().err
        assert "rows.csv must have a header with the 3 columns" in err
        assert f"Got none named {missing}" in err
        assert "1.5" not in err
        assert not (tmp_path / "c.json").exists()

    def test_a_column_that_is_there_twice_is_refused(self, tmp_path, release, capsys):
        (tmp_path / "rows.csv").write_text("age,age,metres,cured\n1,2,3,no\n")
        assert command(release) == 2
        assert "Got 'age' twice" in capsys.readouterr().err

    @pytest.mark.parametrize("line", ["", *BAD_LINES])
    def test_no_row_is_refused_or_changes_another(
        self, made, tmp_path, release, line, capsys
    ):
        columns = patients(np.random.default_rng(3), 60)
        write(tmp_path / "rows.csv", columns)
        text = (tmp_path / "rows.csv").read_text()
        (tmp_path / "rows.csv").write_text(text + line + "\n")
        assert command(f"{release} --notes {tmp_path}/notes.txt") == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        named = NamedRelease.from_json((tmp_path / "c.json").read_text())
        assert named.release.n_samples == 60 + bool(line)
        notes = (tmp_path / "notes.txt").read_text()
        assert notes.startswith("1 of" if line else "0 of")

    def test_all_rows_that_cannot_be_read_add_the_same(
        self, tmp_path, release, monkeypatch
    ):
        released = []

        def of(release, statistic):
            released.append(np.asarray(statistic))
            return released[-1]

        monkeypatch.setattr(Release, "of", of)
        columns = patients(np.random.default_rng(3), 60)
        write(tmp_path / "rows.csv", columns)
        text = (tmp_path / "rows.csv").read_text()
        others = text.splitlines()[2:]
        for bad in BAD_LINES:
            # The line is the first one, so that all others are read after it.
            lines = [text.splitlines()[0], bad, *others]
            (tmp_path / "rows.csv").write_text("\n".join(lines))
            assert command(release) == 0
            (tmp_path / "c.json").unlink()
        assert np.ptp(released, axis=0).max() == 0
        (tmp_path / "rows.csv").write_text(text)
        assert command(release) == 0
        assert np.abs(released[-1] - released[0]).max() > 0.1

    def test_notes_have_the_number_of_clipped_rows(self, made, tmp_path, release):
        columns = patients(np.random.default_rng(3), 60)
        columns["age"][:7] = 500
        write(tmp_path / "rows.csv", columns)
        assert command(f"{release} --notes {tmp_path}/notes.txt") == 0
        model = MediatorModel.from_json((made / "model.json").read_text())
        X = np.column_stack([columns["age"], columns["metres"]])
        n_clipped = np.sum(np.linalg.norm(model.transform(X), axis=1) > 1)
        assert n_clipped >= 7
        notes = (tmp_path / "notes.txt").read_text()
        assert f"\n{n_clipped} rows were clipped to the norm 1.\n" in notes

    def test_how_rows_are_read_is_said_by_options(self, made, tmp_path, release):
        columns = patients(np.random.default_rng(3), 60)
        for name in ("age", "metres"):
            columns[name] = [str(x).replace(".", ",") for x in columns[name]]
        write(tmp_path / "rows.csv", columns, separator=";")
        line = f"{release} --sep ; --decimal , --notes {tmp_path}/notes.txt"
        assert command(line) == 0
        assert (tmp_path / "notes.txt").read_text().startswith("0 of 60")

    # Spellings of the two classes in the public file -> in the party's, and classes.
    @pytest.mark.parametrize(
        ("public", "private", "classes"),
        [
            (("0", "1"), ("0", "1"), ("0", "1")),
            (("0", "1"), ("0.0", "1.0"), ("0", "1")),
            (("0.0", "1.0"), ("0", "1"), ("0.0", "1.0")),
            (("1", "10"), ("1e0", "1e1"), ("1", "10")),
            (("no", "1"), ("no", "1.0"), ("1", "no")),
        ],
    )
    def test_labels_that_are_numbers_are_read_by_their_number(
        self, tmp_path, public, private, classes
    ):
        for name, (negative, positive) in (("public", public), ("rows", private)):
            columns = patients(np.random.default_rng(3), 60)
            columns["cured"] = [
                positive if label == "yes" else negative for label in columns["cured"]
            ]
            write(tmp_path / f"{name}.csv", columns)
        line = f"party model {tmp_path}/public.csv --target cured -o {tmp_path}/m.json"
        assert command(line) == 0
        model = MediatorModel.from_json((tmp_path / "m.json").read_text())
        assert model.classes == classes
        line = (
            f"party release {tmp_path}/m.json {tmp_path}/rows.csv --party c {GUARANTEE}"
            f" -o {tmp_path}/c.json --notes {tmp_path}/notes.txt"
        )
        assert command(line) == 0
        assert (tmp_path / "notes.txt").read_text().startswith("0 of 60")

    def test_two_spellings_of_a_public_number_are_one_class(self, tmp_path):
        columns = patients(np.random.default_rng(3), 60)
        columns["cured"] = ["1" if c == "yes" else "0" for c in columns["cured"]]
        columns["cured"][columns["cured"].index("1")] = "1.0"
        write(tmp_path / "public.csv", columns)
        line = f"party model {tmp_path}/public.csv --target cured -o {tmp_path}/m.json"
        assert command(f"{line} --positive 1") == 0
        model = MediatorModel.from_json((tmp_path / "m.json").read_text())
        assert model.classes == ("0", "1")

    @pytest.mark.parametrize("separator", [",", "\t"])
    def test_a_row_of_missing_cells_is_a_row(self, tmp_path, release, separator):
        write(tmp_path / "rows.csv", patients(np.random.default_rng(3), 60), separator)
        lines = (tmp_path / "rows.csv").read_text().splitlines()
        lines[5] = 2 * separator
        (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
        sep = "tab" if separator == "\t" else separator
        line = f"{release} --sep {sep} --notes {tmp_path}/notes.txt"
        assert command(line) == 0
        assert (tmp_path / "notes.txt").read_text().startswith("1 of 60")


class TestNotes:
    """Notes are written with the release or not at all, and over no other file."""

    @pytest.mark.parametrize("path", ["rows.csv", "c.json", "l.db", "none/notes.txt"])
    def test_are_refused_before_the_charge(self, path, tmp_path, release, capsys):
        write(tmp_path / "rows.csv", patients(np.random.default_rng(3), 60))
        before = (tmp_path / "rows.csv").read_bytes()
        ledger = Ledger(tmp_path / "l.db", "rows", epsilon=5.0, delta=1e-5)
        line = f"{release} --ledger {tmp_path}/l.db --dataset-name rows"
        assert command(f"{line} --notes {tmp_path}/{path}") == 2
        assert "--notes must be" in capsys.readouterr().err
        assert ledger.n_charges == 0
        assert (tmp_path / "rows.csv").read_bytes() == before
        assert not (tmp_path / "c.json").exists()

    def test_replace_those_of_an_earlier_release(self, tmp_path, release):
        write(tmp_path / "rows.csv", patients(np.random.default_rng(3), 60))
        (tmp_path / "notes.txt").write_text("earlier " * 100)
        assert command(f"{release} --notes {tmp_path}/notes.txt") == 0
        assert (tmp_path / "notes.txt").read_text().startswith("0 of 60")


class TestLinear:
    def test_a_regression_is_released_scored_and_rewarded(self, tmp_path, capsys):
        rng = np.random.default_rng(0)
        for name, n in [("public", 200), ("validation", 100), ("rows", 400)]:
            x = rng.normal(5, 2, n)
            y = 1000 + 30 * x + 10 * rng.normal(size=n)
            write(tmp_path / f"{name}.csv", {"x": x, "y": y})
        here = tmp_path
        words = f"party model {here}/public.csv --target y -o {here}/model.json"
        assert command(words) == 0
        words = f"{here}/model.json {here}/rows.csv --party a {GUARANTEE}"
        notes = f"--notes {here}/notes.txt"
        assert command(f"party release {words} -o {here}/a.json {notes}") == 0
        assert "targets were clipped to 1." in (here / "notes.txt").read_text()
        files = f"{here}/model.json {here}/a.json --validation {here}/validation.csv"
        assert command(f"party score {files}") == 0
        assert command(f"party reward {files} -o {here}/rewards") == 0
        words = f"{here}/model.json {here}/rewards/a.json {here}/validation.csv"
        assert command(f"party predict {words} -o {here}/out.csv") == 0
        predicted = np.loadtxt(here / "out.csv", skiprows=1)
        actual = np.loadtxt(here / "validation.csv", delimiter=",", skiprows=1)[:, 1]
        assert np.corrcoef(predicted, actual)[0, 1] > 0.9
        assert abs(predicted.mean() - actual.mean()) < 20


def test_a_model_of_surprise_needs_no_points(made, tmp_path, capsys):
    line = f"party model {made}/public.csv --target cured --value surprise"
    assert command(f"{line} -o {tmp_path}/model.json") == 0
    words = f"{tmp_path}/model.json {made}/a.csv --party a {GUARANTEE}"
    assert command(f"party release {words} -o {tmp_path}/a.json") == 0
    assert command(f"party score {tmp_path}/model.json {tmp_path}/a.json") == 0
    assert "nats." in capsys.readouterr().out


@pytest.mark.parametrize("file", ["model", "a", "scores", "rewards/a"])
def test_what_a_file_states_is_printed(file, made, score, rewards, capsys):
    if file == "scores":
        command(f"{score} -o {made}/scores.json")
    capsys.readouterr()
    assert command(f"party check {made}/{file}.json") == 0
    out = capsys.readouterr().out
    model = MediatorModel.from_json((made / "model.json").read_text())
    assert model.fingerprint[:12] in out


class TestLedger:
    def test_is_charged_once_and_refuses_beyond_the_budget(
        self, tmp_path, release, capsys
    ):
        write(tmp_path / "rows.csv", patients(np.random.default_rng(3), 60))
        ledger = Ledger(tmp_path / "l.db", "rows", epsilon=5.0, delta=1e-5)
        line = f"{release} --ledger {tmp_path}/l.db --dataset-name rows"
        assert command(line) == 0
        assert ledger.spent == pytest.approx(4)
        assert command(line) == 2
        assert "--output must be a new file" in capsys.readouterr().err
        (tmp_path / "c.json").unlink()
        assert command(line) == 2
        assert "must fit what is left of the budget" in capsys.readouterr().err
        assert ledger.n_charges == 1
        assert not (tmp_path / "c.json").exists()

    def test_is_not_charged_on_a_full_disk(self, tmp_path, release, capsys):
        write(tmp_path / "rows.csv", patients(np.random.default_rng(3), 60))
        ledger = Ledger(tmp_path / "l.db", "rows", epsilon=5.0, delta=1e-5)
        with full_disk(20_000):  # enough for the ledger
            line = f"{release} --ledger {tmp_path}/l.db --dataset-name rows"
            assert command(line) == 2
        assert "nothing was released" in capsys.readouterr().err
        assert ledger.n_charges == 0


# Line -> what is said. "MADE" is the folder of the parties, "HERE" that of bad files.
FILES = "MADE/model.json MADE/a.json"
POINTS = "--validation MADE/validation.csv"
RELEASE = f"MADE/a.csv --party c {GUARANTEE} -o HERE/c.json"
BAD = {
    "model MADE/public.csv --target z -o HERE/m.json": "--target must be a column of",
    "model MADE/public.csv --target cured --ignore z -o HERE/m.json": "--ignore must",
    "model MADE/public.csv --target cured -o HERE/m.txt": "--output must end in",
    "model MADE/public.csv --target cured -o MADE/a.json": "--output must be a new",
    "model MADE/public.csv --target cured --positive z -o HERE/m.json": "--positive",
    "model MADE/public.csv --target cured --ignore age --ignore metres "
    "-o HERE/m.json": "public.csv must have a column besides --target cured",
    "model HERE/constant.csv --target cured -o HERE/m.json": "leave it out by --ignore "
    "metres",
    "model HERE/unlabelled.csv --target cured -o HERE/m.json": "must have an entry in "
    "column 'cured' of each line. Got none in line 3",
    "model HERE/three.csv --target cured -o HERE/m.json": "--target must be a column "
    "of numbers that differ, or of two labels. Got 3 in 'cured': 'maybe', 'no', 'yes'",
    "model HERE/numbers.csv --target cured --positive 1 -o HERE/m.json": "--positive "
    "must be used with a target of two labels",
    "model HERE/none.csv --target cured -o HERE/m.json": "No such file",
    "model HERE/holes.csv --target cured -o HERE/m.json": "holes.csv must hold finite "
    "numbers with the decimal mark '.' in column 'metres'. Got '' in line 3",
    "model HERE/broken.csv --target cured -o HERE/m.json": "another number in line 3",
    f"release MADE/a.json {RELEASE}": "of the kind MediatorModel",
    f"release HERE/old.json {RELEASE}": "version 1. Got ('skvalue.collaborative",
    f"release HERE/nan.json {RELEASE}": "must hold finite numbers. Got NaN",
    f"release HERE/long.json {RELEASE}": "must have at most 1000000 bytes",
    f"release HERE/none.json {RELEASE}": "No such file",
    "release MADE/model.json HERE/header.csv --party c --epsilon 1 --delta 1e-5 "
    "-o HERE/c.json": "header.csv must have rows",
    f"release MADE/model.json {RELEASE} --epsilon -1": "--epsilon",
    f"release MADE/model.json {RELEASE} --epsilon 1e300": "--epsilon must be at most",
    f"release MADE/model.json {RELEASE} --delta 2": "--delta",
    f"release MADE/model.json {RELEASE} --party a/b": "--party must be a name",
    f"release MADE/model.json {RELEASE} --ledger x": "must be given together",
    f"release MADE/model.json {RELEASE} --ledger x --dataset-name y": "--ledger must",
    f"score {FILES}": "--validation must be a file of points",
    f"score {FILES} HERE/clip.json {POINTS}": "clip.json must be a release for the "
    "mediator's model. Got one in which the bounds must be",
    f"score {FILES} HERE/columns.json {POINTS}": "in which the columns must be",
    f"score {FILES} HERE/other.json {POINTS}": "in which model must be that of the",
    f"score {FILES} MADE/a.json {POINTS}": "Got a second one of 'a'",
    f"score {FILES} HERE/holes.csv {POINTS}": "text must be JSON",
    f"score {FILES} HERE {POINTS}": "must be a file",
    f"score {FILES} --validation HERE/labels.csv": "Got another in line 2",
    f"score {FILES} --validation HERE/holes.csv": "holes.csv must hold finite numbers",
    f"score {FILES} {POINTS} -o MADE/a.json": "--output must be a file that is not",
    f"score {FILES} {POINTS} --budget -1": "budget must be",
    f"score {FILES} {POINTS} --unit 0.01": "--unit must be used with --budget",
    f"score {FILES} --validation HERE/point.csv": "must have at least 2 points",
    f"reward {FILES} {POINTS} -o HERE/r --n-draws 0": "--n-draws must be an integer "
    "from 1",
    f"reward {FILES} {POINTS} -o HERE/r --n-draws 10000000": "--n-draws must be an "
    "integer from 1 to 1000000",
    f"reward {FILES} {POINTS} -o MADE/a.json": "--output must be a folder",
    f"reward {FILES} MADE/b.json {POINTS} -o HERE/r": "Leave out the release of b",
    "predict MADE/model.json MADE/a.json MADE/a.csv -o HERE/p.csv": "NamedReward",
    "check MADE/a.csv": "must be a file that `skvalue party` wrote",
}


@pytest.fixture
def bad_files(made, tmp_path):
    """Files that are refused."""
    model = json.loads((made / "model.json").read_text())
    release = json.loads((made / "a.json").read_text())
    statistic = {**release["release"], "bounds": [2.0]}
    texts = {
        "old.json": json.dumps({**model, "version": 0}),
        "nan.json": json.dumps({**model, "x_bound": float("nan")}),
        "long.json": json.dumps(model) + " " * 1_000_000,
        "clip.json": json.dumps({**release, "party": "d", "release": statistic}),
        "columns.json": json.dumps(
            {**release, "party": "d", "columns": ["metres", "age", "cured"]}
        ),
        "other.json": json.dumps({**release, "party": "d", "model": "0" * 64}),
        "holes.csv": "age,metres,cured\n50,1.7,yes\n50,,no\n",
        "broken.csv": "age,metres,cured\n50,1.7,yes\n50,no\n",
        "header.csv": "age,metres,cured\n",
        "point.csv": "age,metres,cured\n50,1.7,yes\n",
        "constant.csv": "age,metres,cured\n50,1.7,yes\n51,1.7,no\n",
        "unlabelled.csv": "age,metres,cured\n50,1.7,yes\n51,1.8,\n",
        "three.csv": "age,metres,cured\n50,1.7,yes\n51,1.8,no\n52,1,maybe\n",
        "numbers.csv": "age,metres,cured\n50,1.7,1\n51,1.8,2\n52,1,3\n",
        "labels.csv": "age,metres,cured\n50,1.7,maybe\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("line", BAD)
def test_what_is_wrong_is_said_in_a_sentence(line, made, bad_files, capsys):
    words = line.replace("MADE", str(made)).replace("HERE", str(bad_files))
    before = {path.name for path in bad_files.iterdir()}
    assert command(f"party {words}") == 2
    err = capsys.readouterr().err
    assert BAD[line] in err
    assert err.count("\n") == 1
    assert {path.name for path in bad_files.iterdir()} == before


def test_a_party_compares_its_reward_with_its_own_rows(made, rewards, tmp_path, capsys):
    lines = (made / "a.csv").read_text().splitlines()
    few = tmp_path / "few.csv"
    few.write_text("\n".join([*lines[:41], "nan,1.7,yes", "50,1.7,maybe"]))
    words = f"{made}/model.json {rewards}/a.json {few}"
    assert command(f"party gain {words}") == 0
    gain = float(capsys.readouterr().out.split(" by ")[1].split()[0])
    assert abs(gain) < 1
    few.write_text("\n".join(lines[:10]))
    assert command(f"party gain {words}") == 2
    err = capsys.readouterr().err
    assert "few.csv must have at least 20 rows that can be read. Got 9" in err


def test_a_reward_of_another_model_is_refused(made, rewards, tmp_path, capsys):
    named = NamedReward.from_json(Path(rewards, "a.json").read_text())
    other = NamedReward("a", "0" * 64, named.posterior)
    (tmp_path / "a.json").write_text(other.to_json())
    words = f"{made}/model.json {tmp_path}/a.json {made}/a.csv -o {tmp_path}/p.csv"
    assert command(f"party predict {words}") == 2
    assert "a.json must be a reward of the mediator's model" in capsys.readouterr().err
