"""Columns that say too little about the labels for models to predict them."""

from sklearn.preprocessing import StandardScaler

from ...labels import model_skill, predict_held_out
from ._encoding import encode
from ._finding import Finding


def skill_of_columns(columns, codes, classes, seed):
    """What held-out predictions of the default models are worth, see `model_skill`."""
    values = StandardScaler().fit_transform(encode(columns))
    probabilities = predict_held_out(values, codes, random_state=seed)
    return model_skill(probabilities.argmax(axis=1), codes, classes)


def find_weak_model(skill, wording):
    """Held-out predictions that are hardly better than the commonest label."""
    if not skill["weak"]:
        return
    evidence = ("accuracy", "commonest_rate", "z", "kappa")
    yield Finding(
        "weak model",
        "question",
        f"On unseen rows, models tell the right {wording.label} in "
        f"{skill['accuracy']:.0%} ({skill['low']:.0%} to {skill['high']:.0%}), always "
        f"{skill['commonest']!r} is right in {skill['commonest_rate']:.0%}: too little "
        f"to check {wording.labels}. Is a column missing?",
        evidence={name: skill[name] for name in evidence},
    )
