"""Columns that say too little about the labels for models to predict them."""

from sklearn.preprocessing import StandardScaler

from ...labels import model_skill, predict_held_out
from ._columns import encode
from ._finding import Finding


def worth_of_models(columns, codes, classes, seed):
    """What held-out predictions of the default models are worth, see `model_skill`."""
    Z = StandardScaler().fit_transform(encode(columns))
    predicted = predict_held_out(Z, codes, random_state=seed).argmax(axis=1)
    return model_skill(predicted, codes, classes)


def find_weak_model(worth, words):
    """Held-out predictions that are hardly better than the commonest label."""
    if worth["weak"]:
        said = (
            f"On unseen rows, models tell the right {words.label} in {worth['accuracy']:.0%} "
            f"({worth['low']:.0%} to {worth['high']:.0%}), always {worth['commonest']!r} is right "
            f"in {worth['commonest_rate']:.0%}: too little to check {words.labels}. Is a column "
            "missing?"
        )
        evidence = {
            key: worth[key] for key in ("accuracy", "commonest_rate", "z", "kappa")
        }
        yield Finding("weak model", "question", said, evidence=evidence)
