"""Names of the losses of residuals, and the losses of margin deficits that they are made of."""

from __future__ import annotations

from typing import NamedTuple


class ResidualLoss(NamedTuple):
    """A loss of residuals as two halves of a loss of margin deficits, spec K.3."""

    half: str  # the name of the core's loss
    degree: int  # loss(t r) = t^degree loss(r), where all lengths grow


LOSSES = {
    "epsilon_insensitive": ResidualLoss("expected_hinge", 1),
    "squared_epsilon_insensitive": ResidualLoss("expected_squared_hinge", 2),
    "huber": ResidualLoss("expected_huber_hinge", 2),
    "pinball": ResidualLoss("expected_hinge", 1),
    "squared_error": ResidualLoss("expected_squared_hinge", 2),
}
