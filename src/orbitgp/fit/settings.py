"""The sizes of a fit; the defaults need no tuning."""

from dataclasses import dataclass

from orbitgp.errors import InputError


@dataclass(frozen=True)
class TrainingSettings:
    """The sizes of a fit; the defaults suit most data.

    Sizes that are None follow from the number of inputs, and not from the machine. So two machines
    learn the same model, up to rounding. Give the `sizes_` of a fitted estimator to learn its
    model again, also where they were chosen by `budget_seconds`.

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
    max_exact : int, default=20000
        Inputs up to which inference is exact. A factorisation of 20,000 takes 9.6 GB of memory and
        some two minutes on two cores at 2.5 GHz. More inputs, streams and other likelihoods than a
        Gaussian take inducing variables.
    max_inducing : int, default=5000
        Inducing variables, at most. There are M = √(7·10¹¹ / N) of N inputs, but at least 500:
        5,000 of up to 28,000 inputs, 3,741 of 50,000, 836 of a million. Likelihoods whose solution
        takes G passes have M = √(7·10¹¹ / (G N)).
    max_full_mean : int, default=50000
        Inputs in memory up to which the mean has a variable for every input, beside M for the
        variance: 9 GB of memory and 200 s at 50,000.
    num_draws : int, optional
        Transformations that all inputs share. The number S without it is the largest of 64, 32, 16,
        8 and 4 with N S² ≤ 1.3·10⁶; in a bound it is from 4 to 8. A finite orbit that is small
        enough is taken as a whole.
    num_inducing : int, optional
        Inducing variables; 0 stands for exact inference.
    full_mean : bool, optional
        Whether the mean has a variable for every input. Without it there are none if
        `num_inducing` is given.

    Raises
    ------
    InputError
        If a size is not positive.

    Examples
    --------
    >>> from orbitgp import InvariantGPClassifier, TrainingSettings
    >>> quick = TrainingSettings(max_steps=4, scan_size=100)
    >>> model = InvariantGPClassifier("affine", settings=quick)

    Take the sizes that a budget bought on one machine to another one:

    >>> from dataclasses import replace
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits().images[:60], load_digits().target[:60]
    >>> here = InvariantGPClassifier(settings=quick, budget_seconds=10, random_state=0).fit(X, y)
    >>> here.sizes_
    {'num_draws': 1, 'num_inducing': 0, 'full_mean': False}
    >>> there = InvariantGPClassifier(settings=replace(quick, **here.sizes_), random_state=0)
    >>> bool(there.fit(X, y).evidence_ == here.evidence_)
    True
    """

    max_steps: int = 16
    scan_size: int = 250
    scan_draws: int = 16
    climb_size: int = 250
    climb_draws: int = 32
    search_size: int = 2048
    calibration_size: int = 4096
    max_exact: int = 20_000
    max_inducing: int = 5_000
    max_full_mean: int = 50_000
    num_draws: int | None = None
    num_inducing: int | None = None
    full_mean: bool | None = None

    def __post_init__(self) -> None:
        bad = {name: value for name, value in vars(self).items() if not _is_size(name, value)}
        if bad:
            raise InputError(
                f"training settings must be positive, num_inducing, max_exact and max_full_mean at "
                f"least 0, and full_mean True or False; got {bad}"
            )


def _is_size(name: str, value: float | None) -> bool:
    if name == "full_mean":
        return value in (None, 0, 1)
    if name in ("num_draws", "num_inducing") and value is None:
        return True
    fewest = 0 if name in ("num_inducing", "max_exact", "max_full_mean") else 1
    whole = name not in ("num_draws", "num_inducing") or isinstance(value, int)
    return value is not None and whole and value >= fewest
