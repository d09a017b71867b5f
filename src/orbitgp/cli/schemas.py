"""What each command prints with --json.

`schema` names the form and its version: keys may be added within a version, but none is removed or
changes its meaning. Numbers that are not finite are null.
"""

from typing import Any, Literal, TypedDict

Task = Literal["classification", "regression"]
Label = str | int | float | bool
Metrics = dict[str, float | None]


class ErrorPart(TypedDict):
    """`kind` is the name of the error, as in orbitgp.errors."""

    kind: str
    message: str
    exit_code: int


class ErrorRecord(TypedDict):
    """Any command that ends with an exit code above 1."""

    schema: Literal["orbitgp.error/1"]
    error: ErrorPart


class ScoresPart(TypedDict):
    """Metrics as in `orbitgp.scores`: error is a fraction, nll is in nats."""

    num_data: int
    metrics: Metrics


class RangePart(TypedDict):
    """A range in its unit.

    `part` is the place of its orbit in a composition, if several have a range of this name, or
    0. A `logarithmic` one is of a factor.
    """

    name: str
    unit: str
    part: int
    low: float | None
    high: float | None
    identified: bool
    logarithmic: bool


class LearnedPart(TypedDict):
    """What a fitted model found; evidence in nats.

    `num_draws` are the orbit draws that all inputs share, `num_inducing` the inducing variables of
    a bound, and `full_mean` says whether its mean has a variable for every input.
    """

    task: Task
    classes: list[Label] | None
    learned: str
    ranges: list[RangePart]
    evidence: float | None
    evidence_error: float | None
    evidence_kind: Literal["exact", "bound"]
    num_draws: int
    steps: int
    stopped: str
    num_inducing: int | None
    full_mean: bool


class FitRecord(LearnedPart):
    """fit and resume."""

    schema: Literal["orbitgp.fit/1"]
    run: str
    state: Literal["fitted", "resumed", "read back"]
    task_reason: str
    num_data: int
    processes: int
    test: ScoresPart | None
    seconds: float
    warnings: list[str]


class EvaluateRecord(ScoresPart):
    """evaluate; `test_file` is null for a model that is not in a run folder."""

    schema: Literal["orbitgp.evaluate/1"]
    run: str
    data: str
    part: Literal["test", "train", "all"]
    task: Task
    test_file: str | None


class PredictRecord(TypedDict):
    """predict; `columns` and `rows` are null when they were written to `out`."""

    schema: Literal["orbitgp.predict/1"]
    run: str
    data: str
    task: Task
    num_data: int
    out: str | None
    columns: list[str] | None
    rows: list[list[Label | None]] | None


class ProgressPart(TypedDict):
    """Where an unfinished run stands: its newest evaluation, in nats of `num_data` inputs."""

    step: int
    evidence: float | None
    num_data: int
    learned: str


class DescribeRecord(TypedDict):
    """describe; an unfinished run has `progress` (null before its first evaluation), no `model`."""

    schema: Literal["orbitgp.describe/1"]
    run: str
    state: Literal["finished", "unfinished"]
    model: LearnedPart | None
    progress: ProgressPart | None
    test: ScoresPart | None
    files: list[str]


class ReportRecord(TypedDict):
    """report."""

    schema: Literal["orbitgp.report/1"]
    run: str
    report: str


class ChangePart(TypedDict):
    """One step of a policy; `parameters` have name, unit, distribution and its numbers."""

    kind: str
    parameters: list[dict[str, Any]]
    settings: dict[str, Any]


class ExportRecord(TypedDict):
    """export; `source` is null if it was written to `out`."""

    schema: Literal["orbitgp.export/1"]
    run: str
    policy: Literal["torchvision", "kornia", "json"]
    steps: list[ChangePart]
    left_out: list[str]
    out: str | None
    source: str | None


class PredictorRecord(TypedDict):
    """export of a predictor; the shape of one input, and the names of the outputs."""

    schema: Literal["orbitgp.predictor/1"]
    run: str
    predictor: str
    num_bytes: int
    inputs: list[int]
    outputs: list[str]


class CompletionRecord(TypedDict):
    """completion."""

    schema: Literal["orbitgp.completion/1"]
    shell: str
    script: str


class CheckDataRecord(TypedDict):
    """check-data; `classes` counts the inputs of each, and is null for regression."""

    schema: Literal["orbitgp.check-data/1"]
    data: str
    num_data: int
    num_test: int
    input_shape: list[int]
    lowest: float
    highest: float
    task: Task
    task_reason: str
    classes: dict[str, int] | None


class CandidatePart(TypedDict):
    """One candidate; evidence and differences in nats, those of parts of the data by their size."""

    name: str
    evidence: float | None
    evidence_error: float | None
    kind: Literal["exact", "bound"]
    likelihood: str
    difference: float | None
    difference_error: float | None
    difference_by_size: dict[str, float | None]
    learned: str
    ranges: list[RangePart]
    seconds: float


class CompareRecord(TypedDict):
    """compare; the best candidate first. With --trial_index there is one candidate only."""

    schema: Literal["orbitgp.compare/1"]
    run: str
    task: Task
    num_data: int
    candidates: list[CandidatePart]
    warnings: list[str]


class StepPart(TypedDict):
    """One transformation that was tried, and the nats that it added."""

    name: str
    width: float
    gain: float | None
    taken: bool


class WorthPart(TypedDict):
    """What a transformation is worth, in nats; a group has no range and no interval."""

    name: str
    range: RangePart | None
    interval: list[float] | None
    removed: float
    removed_error: float
    halved: float | None
    doubled: float | None
    identified: bool


class AblateRecord(TypedDict):
    """ablate; `num_data` are the inputs whose evidence was asked."""

    schema: Literal["orbitgp.ablate/1"]
    run: str
    data: str
    num_data: int
    evidence_kind: Literal["exact", "bound"]
    worths: list[WorthPart]


class DiscoverRecord(TypedDict):
    """discover; `run` is the folder of the fitted model, `gain` what it has more than `none`."""

    schema: Literal["orbitgp.discover/1"]
    run: str
    task: Task
    num_data: int
    names: list[str]
    gain: float
    none: float
    evidence_kind: Literal["exact", "bound"]
    learned: str
    path: list[StepPart]
    worths: list[WorthPart]
    sentence: str
    seconds: float
    warnings: list[str]
