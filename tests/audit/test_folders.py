"""The walk-throughs of the pages, each person in a folder and a process of its own."""

import json
import sys

import numpy as np
import pytest

from tests.audit.folders import People, patients

pd = pytest.importorskip("pandas")
# A process is a fork of that of the tests, or, in the slow tier, an interpreter.
processes = pytest.mark.parametrize(
    "fresh",
    [
        pytest.param(
            False,
            marks=pytest.mark.skipif(
                sys.platform in ("win32", "darwin"), reason="a fork is not safe"
            ),
            id="forks",
        ),
        pytest.param(True, marks=pytest.mark.slow, id="interpreters"),
    ],
)
GUARANTEE = "--epsilon 4 --delta 1e-5"


@processes
def test_parties_and_a_mediator_have_folders_of_their_own(fresh, tmp_path):
    people = People(tmp_path, ["mediator", "honest", "flipped"], fresh)
    rng = np.random.default_rng(0)
    people.write_table("mediator", "public.csv", patients(rng, 200))
    people.write_table("mediator", "validation.csv", patients(rng, 100))
    people.write_table("honest", "mine.csv", patients(rng, 400))
    people.write_table("flipped", "mine.csv", patients(rng, 400, flipped=True))

    people.run(
        "mediator",
        "party model public.csv --target cured --positive yes -o model.json",
    )
    for name in ("honest", "flipped"):
        people.send("mediator", "model.json", name)
        people.run(name, "ledger new budget.db patients --epsilon 5 --delta 1e-5")
        printed = people.run(
            name,
            f"party release model.json mine.csv --party {name} {GUARANTEE} --ledger "
            f"budget.db --dataset-name patients -o {name}.json --notes notes.txt",
        )
        assert "(4, 1e-05)-differential privacy" in printed
        assert "epsilon=4 of 5 spent" in people.run(name, "ledger show budget.db")
        people.send(name, f"{name}.json", "mediator")

    files = "model.json honest.json flipped.json --validation validation.csv"
    people.run("mediator", f"party score {files} -o scores.json")
    scores = json.loads((tmp_path / "mediator" / "scores.json").read_text())
    values = {party["party"]: party["value"] for party in scores["parties"]}
    assert values["honest"] > 0.05 > 0 > values["flipped"]

    # The mediator leaves out the party of negative value, and rewards the other.
    people.run(
        "mediator",
        "party reward model.json honest.json --validation validation.csv -o rewards",
    )
    people.send("mediator", "rewards/honest.json", "honest")
    people.run("honest", "party predict model.json honest.json mine.csv -o out.csv")
    probabilities = pd.read_csv(tmp_path / "honest" / "out.csv").iloc[:, 0]
    is_cured = pd.read_csv(tmp_path / "honest" / "mine.csv")["cured"] == "yes"
    assert ((probabilities > 0.5) == is_cured).mean() > 0.75


# Party -> its number of rows, the fraction of its labels that are wrong, and whether
# its features are of other patients.
SIX = {
    "big": (1000, 0.0, False),
    "small": (150, 0.0, False),
    "wrong": (500, 0.35, False),
    "irrelevant": (500, 0.0, True),
    "flipped": (500, 1.0, False),
    "copy": None,
}


@pytest.mark.slow
def test_six_parties_are_valued_in_the_order_of_their_rows(tmp_path):
    people = People(tmp_path, ["mediator", *SIX], fresh=True)
    rng = np.random.default_rng(0)
    people.write_table("mediator", "public.csv", patients(rng, 300))
    people.write_table("mediator", "validation.csv", patients(rng, 500))
    people.run(
        "mediator",
        "party model public.csv --target cured --positive yes -o model.json",
    )
    for name, kind in SIX.items():
        people.send("mediator", "model.json", name)
        if kind is None:
            people.send("big", "mine.csv", name)
        else:
            n_rows, wrong, is_irrelevant = kind
            rows = patients(rng, n_rows, flipped=rng.random(n_rows) < wrong)
            if is_irrelevant:
                rows["age"] = patients(rng, n_rows)["age"]
            people.write_table(name, "mine.csv", rows)
        people.run(
            name,
            f"party release model.json mine.csv --party {name} --epsilon 2 "
            f"--delta 1e-5 -o {name}.json",
        )
        people.send(name, f"{name}.json", "mediator")

    files = " ".join(f"{name}.json" for name in SIX)
    people.run(
        "mediator",
        f"party score model.json {files} --validation validation.csv -o scores.json",
    )
    scores = json.loads((tmp_path / "mediator" / "scores.json").read_text())
    values = {party["party"]: party["value"] for party in scores["parties"]}
    assert min(values, key=values.get) == "flipped"
    assert values["flipped"] < 0
    for name in ("big", "copy"):
        assert values[name] > max(values["wrong"], values["irrelevant"]) + 0.02
    assert values["irrelevant"] < 0.3 * values["big"]


@processes
def test_a_buyer_and_sellers_have_folders_of_their_own(fresh, tmp_path):
    people = People(tmp_path, ["buyer", "alike", "older"], fresh)
    rng = np.random.default_rng(0)
    people.write_table("buyer", "mine.csv", people_of(rng, 400, 40))
    people.write_table("alike", "mine.csv", people_of(rng, 2000, 40))
    # The columns are in another order, and one is not the buyer's.
    older = {"name": ["x"] * 2000, **people_of(rng, 2000, 60)}
    people.write_table("older", "mine.csv", dict(reversed(older.items())))

    people.run("buyer", "buyer export mine.csv -o model")
    for name in ("alike", "older"):
        people.send("buyer", "model", name)
        people.run(name, "ledger new budget.db people --epsilon 2 --delta 1e-5")
        people.run(
            name,
            "seller summarize model mine.csv --epsilon 1 --delta 1e-5 --ledger "
            f"budget.db --dataset-name people -o {name}.json --notes notes.txt",
        )
        notes = (tmp_path / name / "notes.txt").read_text()
        assert notes.startswith("0 rows could not be read")
        people.run(name, f"seller check {name}.json")
        people.send(name, f"{name}.json", "buyer")

    printed = people.run(
        "buyer", "buyer score model mine.csv alike.json older.json -o scores.csv"
    )
    assert "older.json: " in printed
    scores = pd.read_csv(tmp_path / "buyer" / "scores.csv")
    assert list(scores["summary"]) == ["older.json", "alike.json"]
    assert scores["score"][0] > 3 * scores["noise_floor"][0]
    assert scores["score"][1] < scores["noise_floor"][1]


def people_of(rng, n, age):
    """Columns of n people of about an age, and their lengths in metres."""
    ages = rng.normal(age, 5, n).round(2)
    return {"age": ages, "metres": rng.normal(1.7, 0.1, n).round(3)}
