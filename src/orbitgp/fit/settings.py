"""How hyperparameters are learned; the defaults need no tuning."""

from dataclasses import dataclass

from orbitgp.errors import InputError


@dataclass(frozen=True)
class TrainingSettings:
    """Sizes of the subsets whose exact evidence hyperparameters are learned by; all positive.

    A scan over widths of ranges takes `scan_size` data with `scan_draws` orbit draws. L-BFGS then
    takes at most `max_steps` steps on `climb_size` data with `climb_draws` draws; fewer draws would
    favour orbits of few directions. The last search over widths takes `search_size` data, and class
    probabilities are calibrated on `calibration_size` of them.
    """

    max_steps: int = 16
    scan_size: int = 250
    scan_draws: int = 16
    climb_size: int = 250
    climb_draws: int = 32
    search_size: int = 2048
    calibration_size: int = 4096

    def __post_init__(self) -> None:
        bad = {name: value for name, value in vars(self).items() if not value > 0}
        if bad:
            raise InputError(f"training settings must be positive; got {bad}")
