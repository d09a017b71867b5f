"""Settings of stochastic training; the defaults need no tuning."""

from dataclasses import dataclass

from orbitgp.errors import InputError


@dataclass(frozen=True)
class StochasticSettings:
    """Sizes and rates of stochastic training, for `inference="stochastic"`.

    Parameters
    ----------
    num_steps : int, default=2000
        Steps of training. More steps raise the bound; rates fall over all of them.
    batch_size : int, default=256
        Inputs of a step, over all processes.
    num_draws : int, default=8
        Orbit samples of each input in a step.
    group_size : int, default=4
        Orbit samples that are spread evenly together; 1 is the estimator of the paper.
    num_inducing : int, default=1000
        Inducing points, if the estimator has no `num_inducing`.
    rate : float, default=0.03
        Learning rate of Adam for ranges, kernel and noise.
    point_rate : float, default=0.01
        Learning rate of Adam for inducing points, in standard deviations of the features.
    last_rate : float, default=0.05
        Part of both rates that is left at the last step; they fall linearly.
    memory : int, default=10000
        Inputs whose statistics q(u) remembers: a natural step has the size batch_size / memory.
    averaged : float, default=0.2
        Part of the steps, at the end, over which q(u) is an average.
    start_size : int, default=4096
        Inputs from which inducing points and the first q(u) are computed, and on which class
        probabilities are calibrated at the end.
    last_draws : int, default=16
        Orbit samples of each input when q(u) is solved for all data at the end.
    prediction_draws : int, default=64
        Orbit samples that all predictions share.
    report_every, checkpoint_every : int, default=50 and 200
        Steps between two points of the evidence curve, and between two checkpoints.

    Raises
    ------
    InputError
        If a size or rate is not positive, or draws do not divide into groups.

    Examples
    --------
    >>> from orbitgp import InvariantGPClassifier, StochasticSettings
    >>> settings = StochasticSettings(num_steps=500)
    >>> model = InvariantGPClassifier("affine", inference="stochastic", settings=settings)
    """

    num_steps: int = 2000
    batch_size: int = 256
    num_draws: int = 8
    group_size: int = 4
    num_inducing: int = 1000
    rate: float = 0.03
    point_rate: float = 0.01
    last_rate: float = 0.05
    memory: int = 10_000
    averaged: float = 0.2
    start_size: int = 4096
    last_draws: int = 16
    prediction_draws: int = 64
    report_every: int = 50
    checkpoint_every: int = 200

    def __post_init__(self) -> None:
        bad = {name: value for name, value in vars(self).items() if not value > 0}
        shares = {"last_rate": self.last_rate, "averaged": self.averaged}
        bad |= {name: share for name, share in shares.items() if share > 1}
        if bad:
            raise InputError(
                "settings of stochastic training must be positive, and last_rate and averaged at "
                f"most 1; got {bad}"
            )
        if self.num_draws % self.group_size or self.num_draws == self.group_size:
            raise InputError(
                "num_draws must be a multiple of group_size with at least two groups, since an "
                f"unbiased estimate needs a pair of groups; got {self.num_draws} draws in groups "
                f"of {self.group_size}"
            )

    def rate_at(self, step: int) -> float:
        """The part of the learning rates that is left at a step: linear, from 1 to `last_rate`."""
        done = step / max(1, self.num_steps - 1)
        return 1 - (1 - self.last_rate) * min(1.0, done)

    def natural_rate_at(self, step: int, num_data: int) -> float:
        """The size ρ of the natural step: constant, then such that q(u) becomes an average.

        Steps of size 1/(k + 1/ρ), k = 1, 2, …, give every one of them the same weight.
        """
        usual = min(1.0, self.batch_size / min(self.memory, num_data))
        averaged = step - round((1 - self.averaged) * self.num_steps)
        return usual if averaged < 0 else 1 / (averaged + 1 / usual)
