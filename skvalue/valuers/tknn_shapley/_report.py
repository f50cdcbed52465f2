"""What a private fit says that it protects."""

from dataclasses import replace

from ...privacy import make_report


def ball_report(event, delta, *, auto_radius=False, groups=False, noise_random_state=None):
    """The report of a private fit; with ``auto_radius``, `fit` chose it by the public points."""
    protects = (
        "whether a row is in the data and what it contains, in counts_, in the values of all other "
        "rows, and in the values of rows scored later"
    )
    not_protected = [
        "the validation points X_val and y_val, which are public",
        "a row from its own value, which is for its owner (values_for)",
        "rows from a reader of all of values_, which is for the curator",
        "running times and error messages",
    ]
    if event.relation != "add_remove":
        not_protected.insert(1, "the number of rows")
    if groups:
        not_protected.append("groups as wholes: the unit is one row of a group")
    report = make_report(
        event,
        delta,
        notion="joint",
        unit="row",
        protects=protects,
        against="all other owners together, and every reader of what is released",
        not_protected=not_protected,
        assumptions=(
            "no row to value is also a validation point",
            f"{'' if auto_radius else 'radius, '}metric and all other parameters were chosen "
            "without looking at the rows",
            "so was the preparation of the columns (scaling, selection, embeddings)",
            "other releases on the same rows are accounted for together with this one (Ledger)",
        ),
        noise_random_state=noise_random_state,
    )
    # The ceiling holds for what is protected; the value of a row does not protect that row.
    return replace(report, detection_ceiling=None)
