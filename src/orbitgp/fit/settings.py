"""How hyperparameters are learned; the defaults need no tuning."""

from dataclasses import dataclass

from orbitgp.errors import InputError


@dataclass(frozen=True)
class TrainingSettings:
    """Sizes of the learning of hyperparameters; the defaults suit most data.

    Parameters
    ----------
    max_steps : int, default=16
        Steps of L-BFGS.
    scan_size, scan_draws : int, default=250 and 16
        Data, and transformations of each, that widths of ranges are scanned on.
    climb_size, climb_draws : int, default=250 and 32
        Data and transformations of L-BFGS; fewer transformations favour orbits with few ranges.
    search_size : int, default=2048
        Data that the last search over the width of all ranges takes.
    calibration_size : int, default=4096
        Data that class probabilities are calibrated on.

    Raises
    ------
    InputError
        If a size is not positive.

    Examples
    --------
    >>> from orbitgp import InvariantGPClassifier, TrainingSettings
    >>> quick = TrainingSettings(max_steps=4, scan_size=100)
    >>> model = InvariantGPClassifier("affine", settings=quick)
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
