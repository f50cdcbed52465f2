"""Files of a federated training: what they hold, and what is refused by name."""

import json

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from skvalue import FederatedSemivalueValuer
from skvalue.privacy import Ledger, SeededNoiseWarning
from skvalue.valuers import FederatedRound, FederatedUpdate

PARTIES = ["north", "south", "west"]
COLUMNS = ["age", "dose"]
ROWS = {"north": 8, "south": 100, "west": 800}
THETA = np.array([0.5, -1.0])
PRIVATE = {"epsilon": 1.0, "clip": 1.0, "n_rounds": 3}
PLAIN = {"clip": None, "n_rounds": 3}


def bowl(thetas):
    return -((thetas - np.array([1.0, -0.5])) ** 2).sum(axis=1)


def start(parameters=PLAIN, **started):
    options = {"training": "lungs", "columns": COLUMNS, **started}
    return FederatedSemivalueValuer(**parameters).start(bowl, PARTIES, **options)


def answer(asked, parameters=PLAIN, party="north", update=(0.3, 0.1), **stated):
    valuer = FederatedSemivalueValuer(**parameters)
    stated = {"n_samples": ROWS[party], "columns": COLUMNS, **stated}
    return valuer.answer_round(asked, update, party=party, **stated)


def answers(asked, parameters=PLAIN, parties=PARTIES):
    return {party: answer(asked, parameters, party) for party in parties}


def altered(record, **values):
    """The text of a record with other fields; Ellipsis leaves a field out."""
    content = {**json.loads(record.to_json()), **values}
    return json.dumps({name: value for name, value in content.items() if value != ...})


both = pytest.mark.parametrize("parameters", [PLAIN, PRIVATE], ids=["plain", "private"])


# What is sent and read ----------------------------------------------------------------


@both
def test_a_round_is_read_as_it_was_written(parameters):
    asked = start(parameters).announce_round(THETA)
    read = FederatedRound.from_json(asked.to_json())
    assert read.fingerprint == asked.fingerprint
    np.testing.assert_array_equal(read.parameters, THETA)
    assert read.parties == tuple(PARTIES)
    assert (read.training, read.number, read.n_rounds) == ("lungs", 1, 3)


@both
def test_an_update_is_read_as_it_was_written(parameters):
    sent = answer(start(parameters).announce_round(THETA), parameters)
    read = FederatedUpdate.from_json(sent.to_json())
    assert read.to_json() == sent.to_json()
    np.testing.assert_array_equal(read.update, sent.update)


def test_an_update_states_the_guarantee_of_all_rounds():
    sent = answer(start(PRIVATE).announce_round(THETA), PRIVATE)
    assert "(1, 1e-05)-differential privacy of a party, by 3 updates" in sent.to_json()
    assert answer(start().announce_round(THETA)).guarantee is None


def test_the_fingerprint_of_a_round_is_of_all_fields():
    server = start()
    texts = [server.announce_round(THETA).to_json()]
    texts.append(server.announce_round(2 * THETA).to_json())
    texts.append(start(training="hearts").announce_round(THETA).to_json())
    texts.append(start(columns=COLUMNS[::-1]).announce_round(THETA).to_json())
    texts.append(start({**PLAIN, "clip": 1.0}).announce_round(THETA).to_json())
    server.add_round(THETA, answers(server.announce_round(THETA)))
    texts.append(server.announce_round(THETA).to_json())
    prints = {FederatedRound.from_json(text).fingerprint for text in texts}
    assert len(prints) == len(texts)


def test_a_training_by_files_is_one_by_arrays_with_numbers_of_rows(tmp_path):
    server = start()
    by_arrays = start()
    theta = THETA
    rng = np.random.default_rng(0)
    for number in range(3):
        asked = FederatedRound.from_json(server.announce_round(theta).to_json())
        present = [party for party in PARTIES if (party, number) != ("west", 1)]
        updates = dict(zip(present, rng.normal(size=(len(present), 2))))
        paths = {}
        for party, update in updates.items():
            paths[party] = tmp_path / f"{party}-{number}.json"
            paths[party].write_text(answer(asked, PLAIN, party, update).to_json())
        step = server.add_round(theta, paths)
        np.testing.assert_array_equal(
            step, by_arrays.add_round(theta, updates, weights=ROWS)
        )
        theta = theta + step
    np.testing.assert_array_equal(server.round_values_, by_arrays.round_values_)
    assert server.round_values_[1, 2] == 0
    assert server.parties_.tolist() == PARTIES


def test_equal_steps_do_not_look_at_numbers_of_rows():
    parameters = {**PLAIN, "step_weights": "equal"}
    server = start(parameters)
    sent = answers(server.announce_round(THETA))
    step = server.add_round(THETA, sent)
    np.testing.assert_allclose(step, [0.3, 0.1])
    updates = {party: record.update for party, record in sent.items()}
    plain = start(parameters)
    plain.add_round(THETA, updates)
    np.testing.assert_array_equal(server.values_, plain.values_)


def test_a_party_is_charged_for_what_it_sends():
    ledger = Ledger(None, "north", epsilon=1.0, delta=1e-5)
    own = {**PRIVATE, "ledger": ledger}
    server = start(PRIVATE)
    for number in range(3):
        assert ledger.n_charges == number
        asked = server.announce_round(THETA)
        server.add_round(THETA, {"north": answer(asked, own)})
    # The server may ask a round twice; the ledger does not pay for it.
    with pytest.raises(ValueError, match="must fit what is left of the budget"):
        answer(asked, own)


def test_what_is_refused_is_not_charged():
    ledger = Ledger(None, "north", epsilon=1.0, delta=1e-5)
    own = {**PRIVATE, "ledger": ledger}
    asked = start({**PRIVATE, "clip": 5.0}).announce_round(THETA)
    with pytest.raises(ValueError, match="asked must ask for the clip"):
        answer(asked, own)
    with pytest.raises(ValueError, match="columns must be"):
        answer(start(PRIVATE).announce_round(THETA), own, columns=["age"])
    with pytest.raises(ValueError, match="n_samples must be"):
        answer(start(PRIVATE).announce_round(THETA), own, n_samples=0)
    assert ledger.n_charges == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_a_private_update_that_is_not_finite_is_sent_as_noise(bad):
    # An error would tell of a row.
    sent = answer(start(PRIVATE).announce_round(THETA), PRIVATE, update=(bad, 0.1))
    assert np.isfinite(sent.update).all()


# What a party refuses -----------------------------------------------------------------


# A parameter -> what a round asks instead.
ASKED = {
    "n_rounds": 300,
    "clip": 100.0,
    "epsilon": 8.0,
    "delta": 1e-2,
    "trust": "server",
}


@pytest.mark.parametrize("name", ASKED)
def test_a_party_refuses_a_round_that_asks_for_more(name):
    asked = start({**PRIVATE, name: ASKED[name]}).announce_round(THETA)
    with pytest.raises(ValueError, match=f"asked must ask for the {name} of this"):
        answer(asked, PRIVATE)


def test_a_party_refuses_a_round_without_noise():
    asked = start({"n_rounds": 3, "clip": 1.0}).announce_round(THETA)
    with pytest.raises(ValueError, match="asked must ask for the epsilon"):
        answer(asked, PRIVATE)


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"columns": ["dose", "age"]}, "column 1 is 'age'. Got 'dose'"),
        ({"columns": ["age"]}, "there are 2. Got 1"),
        ({"columns": "age"}, "columns must be a sequence"),
        ({"party": "east"}, "party must be one of those of the training"),
        ({"n_samples": 2.5}, "n_samples must be an integer"),
        ({"n_samples": True}, "n_samples must be an integer"),
        ({"update": (1.0, 2.0, 3.0)}, r"shape of the parameters, \(2,\)"),
    ],
    ids=str,
)
def test_a_party_refuses_what_does_not_fit(stated, message):
    asked = start().announce_round(THETA)
    valuer = FederatedSemivalueValuer(**PLAIN)
    options = {"party": "north", "n_samples": 8, "columns": COLUMNS, **stated}
    update = options.pop("update", (0.3, 0.1))
    with pytest.raises(ValueError, match=message):
        valuer.answer_round(asked, update, **options)


def test_a_party_refuses_what_is_no_round():
    with pytest.raises(TypeError, match="asked must be a FederatedRound. Got str"):
        answer("round.json")


# What a server refuses ----------------------------------------------------------------


# What differs -> a private update that was made otherwise.
MADE_OTHERWISE = {
    "clip": lambda: answer_to({"clip": 100.0}),
    "epsilon": lambda: answer_to({"epsilon": 8.0}),
    "delta": lambda: answer_to({"delta": 1e-2}),
    "n_rounds": lambda: answer_to({"n_rounds": 1}),
    "trust": lambda: answer_to({"trust": "server"}),
    "columns": lambda: answer_to({}, columns=COLUMNS[::-1]),
    "numbers": lambda: answer_to({}, theta=np.zeros(3), update=np.ones(3)),
    "this training": lambda: answer_to({}, training="hearts"),
    "with its parameters": lambda: answer_to({}, theta=2 * THETA),
    "without a seed": lambda: seeded_answer(),
}


def answer_to(parameters, *, update=(0.3, 0.1), theta=THETA, **started):
    """An answer to a round of another server."""
    parameters = {**PRIVATE, **parameters}
    asked = start(parameters, **started).announce_round(theta)
    columns = started.get("columns", COLUMNS)
    return answer(asked, parameters, update=update, columns=columns)


def seeded_answer():
    asked = start(PRIVATE).announce_round(THETA)
    with pytest.warns(SeededNoiseWarning):
        return answer(asked, {**PRIVATE, "noise_random_state": 0})


@pytest.mark.parametrize("what", MADE_OTHERWISE)
def test_a_server_refuses_an_update_that_was_made_otherwise(what):
    sent = MADE_OTHERWISE[what]()
    server = start(PRIVATE)
    good = answers(server.announce_round(THETA), PRIVATE, ["south", "west"])
    with pytest.raises(ValueError, match=rf"(?s)updates .*{what}.*party 'north'"):
        server.add_round(THETA, {**good, "north": sent})
    # Nothing of the round was used, so that it can be made again.
    server.add_round(THETA, good)


def test_an_update_of_a_former_round_is_refused():
    server = start()
    sent = answers(server.announce_round(THETA))
    server.add_round(THETA, sent)
    with pytest.raises(ValueError, match="number of the round, 2. Got 1, of party"):
        server.add_round(THETA, sent)


def test_another_number_of_rows_than_before_is_refused():
    server = start()
    server.add_round(THETA, answers(server.announce_round(THETA)))
    asked = server.announce_round(THETA)
    sent = answers(asked)
    sent["north"] = answer(asked, n_samples=8000)
    with pytest.raises(ValueError, match="stated before, 8. Got 8000, of party 'north"):
        server.add_round(THETA, sent)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"south": "north"}, "under the name of its party. Got one of 'north' under"),
        ({"east": "north"}, "must name parties of the training.*Got 'east'"),
    ],
)
def test_an_update_under_another_name_is_refused(names, message):
    server = start()
    sent = answers(server.announce_round(THETA))
    with pytest.raises(ValueError, match=message):
        server.add_round(THETA, {name: sent[party] for name, party in names.items()})


def test_arrays_beside_records_are_refused():
    server = start()
    sent = answers(server.announce_round(THETA))
    with pytest.raises(ValueError, match="updates must be arrays, or else all Federat"):
        server.add_round(THETA, {**sent, "west": np.zeros(2)})


def test_a_round_of_parties_without_names_cannot_be_announced():
    valuer = FederatedSemivalueValuer(**PLAIN).start(bowl, 3)
    with pytest.raises(ValueError, match="parties must have names for rounds that"):
        valuer.announce_round(THETA)


def test_a_round_cannot_be_announced_before_start_or_after_the_end():
    with pytest.raises(NotFittedError, match="call start before announce_round"):
        FederatedSemivalueValuer().announce_round(THETA)
    server = start({**PLAIN, "n_rounds": 1})
    server.add_round(THETA, answers(server.announce_round(THETA), {"n_rounds": 1}))
    with pytest.raises(ValueError, match="n_rounds must be at least"):
        server.announce_round(THETA)


@pytest.mark.parametrize(
    ("started", "message"),
    [
        ({"training": "a/b"}, "training must be a name"),
        ({"training": 3}, "training must be a name"),
        ({"columns": "age"}, "columns must be a sequence"),
        ({"columns": ["age", ""]}, "columns must be names of 1 to 200"),
        ({"columns": [1, 2]}, "columns must be names of 1 to 200"),
    ],
    ids=str,
)
def test_a_training_of_other_names_is_refused(started, message):
    with pytest.raises(ValueError, match=message):
        start(**started)


@pytest.mark.parametrize("name", ["../x", "", "a" * 65, ".hidden", "a\nb"])
def test_names_of_parties_make_names_of_files(name):
    with pytest.raises(ValueError, match="parties must be a name of 1 to 64 letters"):
        FederatedSemivalueValuer().start(bowl, ["north", name])


# Hostile files ------------------------------------------------------------------------


NAN = "AAAAAAAA+H8AAAAAAAD4fw=="  # two of them
HUGE = "AAAAAAAA8H0AAAAAAADwfQ=="  # two numbers of 1e300

# What a file has instead -> what the message says.
HOSTILE_UPDATES = {
    "of another format": ({"format": "skvalue.Other"}, "of format"),
    "of an older version": ({"version": 0}, "of format .*, version 1"),
    "of a version that is no integer": ({"version": 1.0}, "of format .*, version 1"),
    "without a field": ({"clip": ...}, "exactly the fields.*'clip'"),
    "with another field": ({"rows": [1]}, "exactly the fields.*'rows'"),
    "of NaN": ({"update": NAN}, "update must be a vector of finite numbers"),
    "longer than its clip": ({"update": HUGE}, "update must be of norm at most"),
    "that is no base64": ({"update": "AAAA*"}, "update must be base64"),
    "of a list": ({"update": [0.1, 0.2]}, "update must be base64"),
    "of no numbers": ({"update": ""}, "update must be a vector of 1 to"),
    "of half a number": ({"update": "AAAA"}, "update must be base64 of 8 bytes"),
    "with a clip below zero": ({"clip": -1.0}, "clip must be a number"),
    "with noise and no clip": ({"clip": None}, "clip must be a number, on which"),
    "with a clip that is a text": ({"clip": "1"}, "clip must be a number"),
    "with a huge clip": ({"clip": 1e60}, "clip must be a number"),
    "with epsilon zero": ({"epsilon": 0.0}, "epsilon must|clip must"),
    "with epsilon true": ({"epsilon": True}, "epsilon must be a number"),
    "with a huge epsilon": ({"epsilon": 1e300}, "epsilon must be a number"),
    "with delta one": ({"delta": 1.0}, "delta must be a number"),
    "with two noises": ({"noise_multiplier": 1.0}, "noise_multiplier must be None"),
    "of no rows": ({"n_samples": 0}, "n_samples must be an integer"),
    "of half a row": ({"n_samples": 8.5}, "n_samples must be an integer"),
    "of too many rows": ({"n_samples": 10**13}, "n_samples must be an integer"),
    "of a round after the last": ({"number": 4}, "number must be an integer from 1"),
    "of a billion rounds": ({"n_rounds": 10**9}, "n_rounds must be an integer"),
    "of another trust": ({"trust": "nobody"}, "trust must be one of"),
    "of a party with a path": ({"party": "../north"}, "party must be a name"),
    "of a party that is no text": ({"party": 3}, "party must be a name"),
    "of no columns": ({"columns": None}, "columns must be a sequence"),
    "of columns in a text": ({"columns": "age"}, "columns must be a sequence"),
    "of a column that is no text": ({"columns": ["age", 2]}, "columns must be names"),
    "of a long column": ({"columns": ["a" * 201]}, "columns must be names"),
    "of too many columns": ({"columns": ["a"] * 10_001}, "columns must be a sequence"),
    "of another fingerprint": ({"asked": "north"}, "asked must be a fingerprint"),
    "with a seed that is no flag": ({"seeded": 0}, "seeded must be a bool"),
    "with a seed and a guarantee": ({"seeded": True}, "guarantee must be None"),
    "of a better guarantee": ({"guarantee": "(0.1, 0)-DP"}, "guarantee must be"),
    "of no guarantee": ({"guarantee": None}, "guarantee must be"),
}


@pytest.mark.parametrize("what", HOSTILE_UPDATES)
def test_a_hostile_update_is_refused_by_name(what, tmp_path):
    values, message = HOSTILE_UPDATES[what]
    server = start(PRIVATE)
    text = altered(answer(server.announce_round(THETA), PRIVATE), **values)
    with pytest.raises(ValueError, match=message):
        FederatedUpdate.from_json(text)
    path = tmp_path / "north.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"north\.json must"):
        server.add_round(THETA, {"north": path})
    server.add_round(THETA, answers(server.announce_round(THETA), PRIVATE))


HOSTILE_ROUNDS = {
    "of an older version": ({"version": 0}, "of format .*, version 1"),
    "of an update": ({"format": "skvalue.valuers.FederatedUpdate"}, "of format"),
    "without parameters": ({"parameters": ...}, "exactly the fields.*'parameters'"),
    "with parameters of NaN": ({"parameters": NAN}, "parameters must be a vector of f"),
    "of one party": ({"parties": ["north"]}, "parties must be a sequence of 2 to"),
    "of equal parties": ({"parties": ["north"] * 2}, "parties must be different names"),
    "of a party with a path": ({"parties": ["a", "/b"]}, "parties must be a name"),
    "of parties in a text": ({"parties": "north"}, "parties must be a sequence"),
    "of a training with a path": ({"training": "../"}, "training must be a name"),
    "of round zero": ({"number": 0}, "number must be an integer"),
    "of noise without a clip": ({"clip": None}, "clip must be a number, on which"),
    "of two noises": ({"noise_multiplier": 1.0}, "noise_multiplier must be None"),
}


@pytest.mark.parametrize("what", HOSTILE_ROUNDS)
def test_a_hostile_round_is_refused_by_name(what):
    values, message = HOSTILE_ROUNDS[what]
    with pytest.raises(ValueError, match=message):
        FederatedRound.from_json(
            altered(start(PRIVATE).announce_round(THETA), **values)
        )


# Content of a file -> what the message says.
HOSTILE_CONTENTS = {
    "nothing": (b"", "must be JSON"),
    "no JSON": (b"update", "must be JSON"),
    "a list": (b"[]", "must be a JSON object"),
    "other bytes": (b"\xff\xfe", "must be ASCII text"),
    "nested lists": (b"[" * 5000, "must be JSON"),
    "a constant": (b'{"format": NaN}', "must hold finite numbers"),
    "a field twice": (b'{"format": 1, "format": 2}', "must name every field once"),
    "more than is allowed": (b" " * 100_000, "must have at most .* bytes"),
}


@pytest.mark.parametrize("what", HOSTILE_CONTENTS)
def test_a_file_that_is_no_update_is_refused_by_name(what, tmp_path):
    content, message = HOSTILE_CONTENTS[what]
    path = tmp_path / "north.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"north\.json (?s:.*){message}"):
        start().add_round(THETA, {"north": path})


def test_a_folder_is_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match="must be a file. Got a folder"):
        start().add_round(THETA, {"north": tmp_path})


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"north\.json"):
        start().add_round(THETA, {"north": str(tmp_path / "north.json")})


@pytest.mark.parametrize("n_parameters", [1, 100_000])
def test_a_good_file_is_never_too_large(n_parameters, tmp_path):
    names = [f"{chr(0x1F600 + i % 50)}" * 200 for i in range(50)]
    server = FederatedSemivalueValuer(**PRIVATE)
    server.start(lambda thetas: thetas[:, 0], PARTIES, columns=names)
    asked = server.announce_round(np.zeros(n_parameters))
    sent = answer(asked, PRIVATE, update=np.full(n_parameters, 0.1), columns=names)
    path = tmp_path / "north.json"
    path.write_text(sent.to_json())
    server.add_round(np.zeros(n_parameters), {"north": path})
    assert FederatedRound.from_json(asked.to_json()).columns == tuple(names)
