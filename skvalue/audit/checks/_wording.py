"""What findings call labels: the classes of some tables, and the targets of others."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Wording:
    """Nouns of the sentences of findings."""

    are_classes: bool
    label: str
    labels: str
    group: str  # of rows with one label


OF_CLASSES = Wording(
    are_classes=True,
    label="label",
    labels="labels",
    group="class",
)
# A row belongs to a fifth of the targets, in the place of a class.
OF_TARGETS = Wording(
    are_classes=False,
    label="fifth of the target",
    labels="targets",
    group="fifth of the targets",
)
