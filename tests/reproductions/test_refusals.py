"""Scripts refuse arguments that they cannot do anything with."""

import pytest

REFUSALS = [
    ("agnews_embeddings", "--data nowhere", "must hold agnews_minilm.npz"),
    ("errata", "Z1", "LABEL must be one of T1, T2"),
    (
        "other_libraries",
        "--with pydvl",
        "--with must be NAME=PYTHON, NAME one of skvalue, pydvl,",
    ),
    ("other_libraries", "--with pydvl=/no/python", "Got 'pydvl=/no/python'."),
    (
        "other_libraries",
        "--sizes 300",
        "--sizes must be pairs N,M of whole numbers. Got 300.",
    ),
    (
        "priarta_markets",
        "--data nowhere",
        "must hold agnews_minilm.npz or adult.npz. Got nowhere",
    ),
    ("private_tknn_tables", "--repeats 0", "--repeats must be at least 1. Got 0"),
    (
        "private_tknn_tables",
        "--targets 5",
        "--targets must be even and at least 2. Got 5",
    ),
    ("private_tknn_tables", "--shadows 1", "--shadows must be at least 2. Got 1"),
    ("private_tknn_tables", "--epsilons 2", "--epsilons must be some or none of"),
    (
        "private_tknn_tables",
        "--validation 3",
        "--validation must be even and at least 2. Got 3",
    ),
    (
        "retraining_baselines",
        "--data . --coalitions 2000",
        "--coalitions must be above 2000",
    ),
    (
        "tknn_tables",
        "--data nowhere",
        "must hold an npz file of 2dplanes, cpu, phoneme, wind, mnist",
    ),
]


@pytest.mark.usefixtures("wind")
@pytest.mark.parametrize(
    ("script", "arguments", "message"), REFUSALS, indirect=["script"]
)
def test_bad_arguments_are_refused(run, arguments, message):
    assert message in " ".join(run(arguments).split())
