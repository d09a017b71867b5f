"""Runs in TensorBoard and MLflow: callbacks, each with an extra of its own."""

from pathlib import Path
from typing import Any

from orbitgp.callbacks.base import Callback, Evaluation
from orbitgp.errors import OrbitGPError


class TensorBoardLog(Callback):
    """The evidence per input and learned ranges, for TensorBoard; needs `orbitgp[tensorboard]`.

    Parameters
    ----------
    folder : str or pathlib.Path
        As in `tensorboard --logdir`.

    Raises
    ------
    OrbitGPError
        If TensorBoard is not installed.

    Examples
    --------
    >>> from orbitgp import InvariantGPClassifier, TensorBoardLog
    >>> model = InvariantGPClassifier("affine", callbacks=[TensorBoardLog("logs")])
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = folder
        self._tensorboard()

    def started(self, max_steps: int) -> None:
        """Open the log: not before, so that an estimator that has it can be cloned."""
        del max_steps
        self._writer = self._tensorboard()(str(self.folder))

    def _tensorboard(self) -> Any:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise _missing("tensorboard", error) from error
        return SummaryWriter

    def evaluated(self, evaluation: Evaluation) -> None:
        """Log the evidence per input, since subsets of several sizes follow each other."""
        self._writer.add_scalar("evidence_per_input", evaluation.per_input, evaluation.step)
        self._writer.add_scalar("num_data", evaluation.num_data, evaluation.step)
        self._writer.add_text("learned", evaluation.learned, evaluation.step)

    def warned(self, message: str) -> None:
        """What a guard did while steps were taken."""
        if hasattr(self, "_writer"):
            self._writer.add_text("warnings", message)

    def finished(self, reason: str) -> None:
        """Everything on the disk."""
        self._writer.add_text("finished", reason)
        self._writer.close()
        del self._writer


class MLflowLog(Callback):
    """The evidence per input, as a metric of the active MLflow run; needs `orbitgp[mlflow]`.

    Raises
    ------
    OrbitGPError
        If MLflow is not installed.

    Examples
    --------
    >>> from orbitgp import InvariantGPClassifier, MLflowLog
    >>> model = InvariantGPClassifier("affine", callbacks=[MLflowLog()])
    """

    def __init__(self) -> None:
        _ = self._mlflow

    @property
    def _mlflow(self) -> Any:
        try:
            import mlflow  # pyright: ignore[reportMissingImports] - an extra
        except ImportError as error:
            raise _missing("mlflow", error) from error
        return mlflow

    def started(self, max_steps: int) -> None:
        """How long it may take."""
        self._mlflow.log_metric("max_steps", max_steps)

    def evaluated(self, evaluation: Evaluation) -> None:
        """Log the evidence per input, since subsets of several sizes follow each other."""
        values = {"evidence_per_input": evaluation.per_input, "num_data": evaluation.num_data}
        self._mlflow.log_metrics(values, step=evaluation.step)
        self._mlflow.set_tag("learned", evaluation.learned)

    def warned(self, message: str) -> None:
        """The last thing that a guard did."""
        self._mlflow.set_tag("warning", message)

    def finished(self, reason: str) -> None:
        """Why it ended."""
        self._mlflow.set_tag("finished", reason)


def _missing(name: str, error: ImportError) -> OrbitGPError:
    return OrbitGPError(f"{name} is not here ({error}); pip install 'orbitgp[{name}]'")
