"""The options of a fit, and the file in a run folder that keeps them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from orbitgp.errors import FileError, InputError
from orbitgp.fit.settings import TrainingSettings
from orbitgp.stochastic.settings import StochasticSettings

COMMAND_FILE = "command.json"
SCHEMA = "orbitgp.command/3"


@dataclass(frozen=True)
class FitOptions:
    """All that decides what `orbitgp fit` does, besides the folder that it fits into."""

    data: str
    target: str | None
    image_size: tuple[int, int] | None
    task: str
    orbit: str
    features: str
    kernel: str | None
    likelihood: str
    inference: str
    num_inducing: int | None
    budget_seconds: float | None
    device: str
    seed: int
    settings: TrainingSettings
    stochastic: StochasticSettings

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "FitOptions":
        """From what was parsed, or read from a file."""
        given = {field.name: values[field.name] for field in fields(cls)}
        given["image_size"] = pair(given["image_size"])
        mean = given["settings"]["full_mean"]  # 0 or 1 on the line
        mean = None if mean is None else bool(mean)
        given["settings"] = TrainingSettings(**{**given["settings"], "full_mean": mean})
        given["stochastic"] = StochasticSettings(**given["stochastic"])
        return cls(**given)

    def anywhere(self) -> "FitOptions":
        """The same from whatever folder it is run: paths are made absolute."""
        from orbitgp.data.named import is_name

        if is_name(self.data):  # which comes before a folder that happens to be called so
            return self
        return replace(self, data=str(Path(self.data).expanduser().resolve()))


def pair(size: Sequence[int] | None) -> tuple[int, int] | None:
    """Height and width; a file may hold more or fewer numbers."""
    if size is None:
        return None
    if len(size) != 2:
        raise InputError(f"image_size is a height and a width; got {list(size)}")
    return int(size[0]), int(size[1])


def write_options(options: FitOptions, run: Path) -> None:
    """Keep the options, so that the folder alone is enough to go on."""
    from orbitgp.sealed import write_atomically

    record = {"schema": SCHEMA, "command": "fit", "options": asdict(options.anywhere())}
    text = json.dumps(record, indent=2, ensure_ascii=False)
    write_atomically(run / COMMAND_FILE, text.encode())


def read_options(run: Path) -> FitOptions:
    """What `write_options` kept."""
    path = run / COMMAND_FILE
    try:
        record = json.loads(path.read_bytes())
        if record["schema"] != SCHEMA:
            raise ValueError(f"schema {record['schema']!r:.40}; expected {SCHEMA}")
        return FitOptions.of(record["options"])
    except FileNotFoundError:
        raise FileError(
            f"{run} has no {COMMAND_FILE}, so no step was taken there by `orbitgp fit`; run that "
            "command again"
        ) from None
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise FileError(
            f"{path} cannot be read ({type(error).__name__}: {error}); run `orbitgp fit` again "
            "with the same options"
        ) from None
