"""How stage one is trained; the defaults need no tuning."""

from dataclasses import dataclass

from orbitgp.errors import InputError


@dataclass(frozen=True)
class TrainingSettings:
    """Numbers of the training loop, all of them positive.

    q(u) is fitted on many orbit samples of many data: few samples drive the ranges too wide, and a
    fit on n of N data costs up to ½ C M N/n nats (decision 21). Gradients are taken on few. q(u) is
    fitted on fixed data and draws, also before each evaluation, and the bound is evaluated on
    others that are fixed too, so that two bounds differ by what was learned and little by noise.
    """

    max_steps: int = 200
    batch_size: int = 256
    num_samples: int = 8
    fit_size: int = 16_000
    fit_samples: int = 16
    refresh_every: int = 20
    evaluate_every: int = 20
    evaluation_size: int = 1000
    learning_rate: float = 0.12
    patience: int = 2

    def __post_init__(self) -> None:
        bad = {name: value for name, value in vars(self).items() if not value > 0}
        if bad or self.num_samples % 2:
            raise InputError(
                f"training settings must be positive, and num_samples even; got {bad or vars(self)}"
            )
