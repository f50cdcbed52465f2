"""What a private fit says that it protects."""

from dataclasses import replace

from ...privacy import make_report, sentences


def ball_report(
    event,
    delta,
    *,
    auto_radius=False,
    groups=False,
    sampled=False,
    noise_random_state=None,
):
    """The report of a private fit.

    ``auto_radius``: whether `fit` chose the radius by the public points. ``sampled``:
    whether each count is of a sample of the rows.
    """
    protects = (
        "whether a row is in the data and what it contains, in counts_, in the values "
        "of all other rows, and in the values of rows scored later"
    )
    not_protected = [
        sentences.PUBLIC_POINTS,
        sentences.OWN_VALUE,
        "rows from a reader of all of values_, which is for the curator",
        sentences.RUNNING_TIMES,
    ]
    if event.relation != "add_remove":
        not_protected.insert(1, "the number of rows")
    if groups:
        not_protected.append(sentences.GROUPS)

    assumptions = [sentences.NOT_A_POINT]
    if sampled:
        assumptions.append(
            "the samples stay secret: a fresh one is drawn for each validation point, "
            "noise is composed over all points, and the value of a row tells its owner "
            "at most which samples it was in"
        )
    chosen = "metric and all other parameters"
    if not auto_radius:
        chosen = f"radius, {chosen}"
    report = make_report(
        event,
        delta,
        notion="joint",
        unit="row",
        protects=protects,
        against="all other owners together, and every reader of what is released",
        not_protected=not_protected,
        assumptions=(
            *assumptions,
            f"{chosen} were chosen without looking at the rows",
            sentences.PREPARATION,
            sentences.OTHER_RELEASES,
        ),
        noise_random_state=noise_random_state,
    )
    # The ceiling holds for what is protected; the value of a row does not protect it.
    return replace(report, detection_ceiling=None)
