"""Columns that say too little about the labels for models to predict them."""

from functools import partial

import numpy as np
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import StandardScaler

from .._held_out import default_models, log_loss, make_folds, mix
from .._worth import worth_of
from ._columns import encode
from ._finding import Finding

_SPLITS = 5


def worth_of_models(columns, codes, classes, seed):
    """What held-out predictions of the default models are worth, see `worth_of`."""
    Z = StandardScaler().fit_transform(encode(columns))
    folds = make_folds(_SPLITS, codes, np.arange(len(codes)), True, seed)
    scores = {
        name: cross_val_predict(model, Z, codes, cv=folds, method="predict_proba")
        for name, model in default_models(True, seed).items()
    }
    predicted = mix(scores, partial(log_loss, codes=codes))[0].argmax(axis=1)
    return worth_of(predicted, codes, classes)


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
