"""Orbits that can be exported, by name; images of 32 × 32 or 24 × 32 pixels."""

import math

from orbitgp import (
    Affine,
    CyclicShifts,
    GaussianNoise,
    Identity,
    Intensity,
    LocalDeformation,
    Mirror,
    QuarterTurns,
    Rotation,
    UniformRange,
    compose,
)

SQUARE, WIDE = (3, 32, 32), (3, 24, 32)

LOW, HIGH = [-0.6, -0.3, -0.1, -0.4, -0.3, -0.1], [0.3, 0.1, 0.4, 0.1, 0.1, 0.4]
ONE_LEARNED = [True, False, False, False, False, False]


def frozen(orbit):
    """Another range of the same orbit, whose ends are frozen."""
    orbit.ranges = UniformRange(LOW, HIGH, learn_low=False, learn_high=False)
    return orbit


ORBITS = {
    "identity": (Identity(), WIDE),
    "affine with free ends": (Affine(LOW, HIGH, symmetric=False), WIDE),
    "affine with tied ends": (Affine(-0.2, 0.2), SQUARE),
    "affine with frozen ends": (frozen(Affine()), WIDE),
    "affine with one range": (
        Affine(
            [-0.5, 0, 0, 0, 0, 0],
            [0.5, 0, 0, 0, 0, 0],
            learn_low=ONE_LEARNED,
            learn_high=ONE_LEARNED,
        ),
        WIDE,
    ),
    "rotation": (Rotation(-math.radians(30), math.radians(10)), WIDE),
    "any rotation": (Rotation.full(), SQUARE),
    "horizontal mirror": (Mirror(), WIDE),
    "vertical mirror": (Mirror(-2), WIDE),
    "quarter turns": (QuarterTurns(), SQUARE),
    "dihedral": (compose(QuarterTurns(), Mirror()), SQUARE),
    "cyclic shifts": (compose(CyclicShifts(32, step=4), CyclicShifts(24, dim=-2)), WIDE),
    "intensity": (Intensity([-0.5, -0.2], [0.2, 0.3]), WIDE),
    "noise": (GaussianNoise(0.1, event_shape=WIDE), WIDE),
    "local deformation": (LocalDeformation([0.02, 0.05, 0.1, 0.08, 0.03], 0.3), WIDE),
    "tangent deformation": (LocalDeformation(0.02, 0.5, num_frequencies=3, tangent=True), WIDE),
    "affine, then local": (compose(Affine(-0.1, 0.1), LocalDeformation(0.03)), SQUARE),
    "everything": (
        compose(
            *(QuarterTurns(), Affine(LOW, HIGH), LocalDeformation(0.02), Mirror(-2)),
            *(Intensity(-0.1, 0.2), CyclicShifts(32, step=8)),
            GaussianNoise(0.05, event_shape=SQUARE),
        ),
        SQUARE,
    ),
}
