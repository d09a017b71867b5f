"""All that the folder of a run holds, read once."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from orbitgp.blueprints.checks import GIVEN
from orbitgp.blueprints.model import fill
from orbitgp.blueprints.orbits import orbit_from
from orbitgp.callbacks.base import Evaluation, evaluations_from
from orbitgp.errors import FileError
from orbitgp.estimators.classifier import AUTO
from orbitgp.estimators.folder import read_examples, read_settings
from orbitgp.evidence.ablation import FILE as ABLATION
from orbitgp.evidence.ablation import Ablation, read_ablation
from orbitgp.evidence.trials import FILE as FINDING
from orbitgp.evidence.trials import Finding, read_finding
from orbitgp.files import ESTIMATORS
from orbitgp.orbits.base import Orbit
from orbitgp.orbits.compose import Composition, parts_of
from orbitgp.orbits.ranges import Range
from orbitgp.reports.history import History, read_history
from orbitgp.reports.pictures import Kind, kind_of
from orbitgp.scores import TestResult, read_test
from orbitgp.sealed import MALFORMED, read_sealed, within

FILES = {
    "command.json": "the options of `orbitgp fit`, for `orbitgp resume`",
    "settings.json": "what was asked, and the versions it was asked of",
    "log.jsonl": "what happened, a line each",
    "checkpoint.safetensors": "where a run that was killed goes on",
    "model.safetensors": "what was learned; read it with orbitgp.load",
    "examples.safetensors": "some of the inputs, for this report",
    "test.safetensors": "predictions for the test inputs",
    "ablation.json": "what each transformation is worth",
    "finding.json": "the evidence of parts of the data",
}


@dataclass(frozen=True)
class Fitted:
    """What the file of the model says; `orbit` is none if it needs code of the user's."""

    evidence: float
    evidence_error: float
    num_steps: int
    stopped: str
    num_points: int
    """Training inputs of exact inference, or inducing variables of a bound."""
    kind: str
    num_draws: int
    curve: tuple[Evaluation, ...]
    orbit: Orbit | None


@dataclass(frozen=True)
class About:
    """What the run kept of its data; `source` is empty if they came as arrays."""

    source: str
    num_inputs: int
    shape: tuple[int, ...]
    classes: dict[str, int]


@dataclass(frozen=True)
class Record:
    """A run as it stands."""

    folder: Path
    settings: dict[str, Any]
    history: History
    fitted: Fitted | None
    examples: tuple[Tensor, list[Any]] | None
    test: TestResult | None
    about: About | None
    ablation: Ablation | None
    findings: tuple[Finding, ...]
    """Of `compare`: that of this run, then those of folders beside it with the same data."""

    @property
    def title(self) -> str:
        """The name of the folder."""
        return self.folder.resolve().name or "run"

    @property
    def classifies(self) -> bool:
        """Whether labels are classes."""
        return self.settings.get("estimator") == "InvariantGPClassifier"

    @property
    def likelihood(self) -> str:
        """The likelihood of the fit, such as "gaussian" or "softmax"."""
        asked = self.settings.get("parameters")
        found = asked.get("likelihood", "auto") if isinstance(asked, dict) else "auto"
        return AUTO if found == "auto" else str(found)

    @property
    def kind(self) -> Kind:
        """What the inputs are."""
        if self.examples is None:
            return Kind.OTHER
        return kind_of(tuple(self.examples[0].shape[1:]))

    @property
    def curve(self) -> tuple[Evaluation, ...]:
        """Of the model, or as far as a run that is not finished has come."""
        logged = self.history.phases[-1].curve if self.history.phases else ()
        points = self.fitted.curve if self.fitted is not None else logged
        # a file may hold any number, and a step is one that can be counted to
        return tuple(p for p in points if isinstance(p.step, int) and 0 <= p.step < 2**53)

    @property
    def learned(self) -> str:
        """In the words of the orbit."""
        if self.fitted is not None and self.fitted.orbit is not None:
            return self.fitted.orbit.describe()
        best = self.best
        return "" if best is None else best.learned

    @property
    def ranges(self) -> tuple[Range, ...]:
        """What was learned; without what is frozen where it changes nothing."""
        ranges = () if self.best is None else self.best.ranges
        if self.fitted is not None and self.fitted.orbit is not None:
            ranges = self.fitted.orbit.learned_ranges()
        return tuple(found for found in ranges if {found.low, found.high} != {found.neutral})

    @property
    def symmetry(self) -> str:
        """The parts of a composed orbit that have no range, in words."""
        orbit = self.fitted and self.fitted.orbit
        parts = parts_of(orbit) if isinstance(orbit, Composition) else []
        return ", then ".join(part.describe() for part in parts if not part.learned_ranges())

    @property
    def is_learned(self) -> bool:
        """Whether any end of a range was free to move."""
        orbit = self.fitted and self.fitted.orbit
        return orbit is None or any(part.requires_grad for part in orbit.parameters())

    @property
    def best(self) -> Evaluation | None:
        """The point of the curve with the most evidence per input."""
        finite = [point for point in self.curve if math.isfinite(point.per_input)]
        return max(finite, key=lambda point: point.per_input, default=None)

    @property
    def shift(self) -> float:
        """Nats per input to add to the log of a regression, whose targets are standardised."""
        logged = self.history.phases[-1].curve if self.history.phases else ()
        known = {point.step: point.per_input for point in logged}
        shifts = (p.per_input - known[p.step] for p in self.curve if p.step in known)
        return next((shift for shift in shifts if math.isfinite(shift)), 0.0)


def read_record(folder: Path) -> Record:
    """Of a folder that `fit` wrote, finished or not."""
    settings = folder / "settings.json"
    if not settings.is_file():
        raise FileError(
            f"{folder} is not the folder of a run: it has no settings.json; give the folder that "
            "was passed as run=… to an estimator, or as --out to orbitgp fit"
        )
    asked = read_settings(settings)
    examples, test = folder / "examples.safetensors", folder / "test.safetensors"
    ablation = folder / ABLATION
    return Record(
        folder=folder,
        settings=asked,
        history=read_history(folder / "log.jsonl"),
        fitted=_read_fitted(folder / "model.safetensors"),
        examples=read_examples(examples) if examples.is_file() else None,
        test=read_test(test) if test.is_file() else None,
        about=_read_about(folder, asked),
        ablation=read_ablation(ablation) if ablation.is_file() else None,
        findings=tuple(_read_findings(folder.resolve(), asked)),
    )


def _read_findings(folder: Path, asked: dict[str, Any]) -> Iterator[Finding]:
    """What is beside a run may be anything, so it is passed over if it cannot be read."""
    if not (folder / FINDING).is_file():
        return
    yield (own := read_finding(folder / FINDING))
    for path in sorted(folder.parent.glob(f"*/{FINDING}")):
        try:
            other = read_finding(path)
            settings = read_settings(path.with_name("settings.json"))
        except FileError:
            continue
        alike = settings.get("data_sha256") == asked.get("data_sha256")
        alike = alike and other.likelihood == own.likelihood
        if alike and other.num_data == own.num_data and other.name != own.name:
            yield other


def _read_about(folder: Path, settings: dict[str, Any]) -> About | None:
    """Of settings and command, if they have it."""
    found: dict[str, Any] = settings.get("data") or {}
    try:
        command = json.loads((folder / "command.json").read_bytes())
        source = Path(str(command["options"]["data"])).name
    except (OSError, *MALFORMED):
        source = ""
    try:
        return About(
            source,
            int(found["num_inputs"]),
            tuple(int(length) for length in found["shape"]),
            {str(name): int(count) for name, count in found["classes"].items()},
        )
    except MALFORMED:
        return None


def _read_fitted(path: Path) -> Fitted | None:
    if not path.is_file():
        return None
    kinds = [kind.__name__ for kind in ESTIMATORS]
    _, tensors, config = read_sealed(path, *kinds)
    try:
        fitted, parts = config["fitted"], within(tensors, "model.orbit")
        orbit = None  # an orbit with code of the user's is in no file
        if config["model"]["orbit"] != GIVEN:
            orbit = orbit_from(config["model"]["orbit"], parts)
            fill(orbit, parts)
        return Fitted(
            evidence=float(fitted["evidence_"]),
            evidence_error=float(fitted["evidence_error_"]),
            num_steps=int(fitted["n_iter_"]),
            stopped=str(fitted.get("stopped_", "")),
            num_points=len(tensors["model.posterior.points"]),
            kind=str(fitted["evidence_kind_"]),
            num_draws=int(fitted["num_draws_"]),
            curve=tuple(evaluations_from(config["curve"])),
            orbit=orbit,
        )
    except FileError:
        raise
    except MALFORMED as error:
        raise FileError(
            f"{path} does not hold a fitted estimator ({type(error).__name__}: {error})"
        ) from None
