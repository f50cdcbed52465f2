"""What a filter warns about: a choice that may not be meant."""

import numpy as np

from .._utils.messages import Message

# Fraction of the selected rows that may be chosen by their position alone, silently.
_TOLERATED_TIES = 0.05

_MOST_NAMED = 5  # classes that lose rows


def notices(choice, weights, y, mode):
    """Messages about a choice that may not be meant."""
    # drop="auto" may have chosen 0.
    if choice.rule.is_zero:
        return
    yield from _nothing_selected(choice)
    if mode == "drop":
        yield from _cut_through_ties(choice)
    if choice.rule.has_classes:
        yield from _lost_classes(choice, weights, np.asarray(y), mode)


def _nothing_selected(choice):
    if choice.selected.any():
        return
    drop = choice.rule.drop
    # Clean labels are no reason for a warning.
    if choice.rule.is_capped:
        return
    counted = f"{len(choice.values)} {choice.unit}"
    if drop == "negative" and not (choice.values < 0).any():
        why = f"the lowest of {counted} is {choice.values.min():.3g}"
    elif drop == "significant":
        why = f"none of {counted} is significantly below zero"
    elif choice.rule.stratify:
        why = f"no label of a class with the lowest of {counted} can be wrong"
    else:
        why = f"the fraction of {counted} is rounded down to 0"
    yield f"drop={drop!r} selects nothing: {why}."


def _cut_through_ties(choice):
    n_selected = int(choice.selected.sum())
    if choice.n_tied_selected > _TOLERATED_TIES * n_selected:
        yield Message(
            "drop",
            f"cuts through ties: {choice.n_tied_selected} of {choice.n_tied} equal "
            f"{choice.unit} are selected by their order alone.",
            alias=f"drop={choice.rule.drop!r}",
        )


def _lost_classes(choice, weights, y, mode):
    """A message about the classes that lose more than half of their rows or weight.

    Also about those that would have lost their only row, or group.
    """
    rule = choice.rule
    labels, codes, sizes = np.unique(y, return_inverse=True, return_counts=True)
    lost = sizes - np.bincount(codes, weights=weights)
    # Where more than half of all rows go, a class may lose as much as they do.
    tolerated = max(0.5, lost.sum() / len(y))
    losses = []
    spared = []
    for label, loss, size in zip(labels.tolist(), lost, sizes):
        if mode == "drop" and label in choice.emptied_classes:
            if loss > 0:
                losses.append(f"all rows of class {label!r} but {_best_of(choice)}")
            else:
                spared.append(f"class {label!r}")
        elif loss > tolerated * size:
            losses.append(f"{loss:.6g} of the {size} rows of class {label!r}")

    advice = ""
    settings = []
    if losses and not rule.stratify and not rule.is_capped and not choice.has_groups:
        advice = "Pass {}, which drops of a class at most what can be wrong in it."
        settings = [("stratify", True)]
    sentences = []
    if losses:
        verb = "drops" if mode == "drop" else "lowers the total weight by"
        sentences.append(f"{verb} {_enumerated(losses, 'of other classes')}.")
    if spared:
        unit = "group" if choice.has_groups else "row"
        names = _enumerated(spared, "classes")
        sentences.append(f"selects the only {unit} of {names}, which is kept.")
    if sentences:
        problem = " It ".join(sentences)
        yield Message("drop", problem, advice, settings, alias=f"drop={rule.drop!r}")


def _best_of(choice):
    """What stays of a class that would have lost all rows."""
    if choice.has_groups:
        return "those of the group of the highest value"
    return "that of the highest value"


def _enumerated(texts, others):
    """The first texts, and how many there are besides."""
    first = texts[:_MOST_NAMED]
    n_more = len(texts) - len(first)
    if n_more:
        first.append(f"{n_more} more {others}")
    return ", and ".join(first)
