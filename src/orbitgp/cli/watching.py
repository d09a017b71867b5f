"""What the command line does while a run goes on."""

import sys
from pathlib import Path

from orbitgp.callbacks.base import Callback
from orbitgp.cli.options import FitOptions, write_options
from orbitgp.cli.output import Output
from orbitgp.fit.learning import INTERRUPTED


class FitWatcher(Callback):
    """Keeps the options once the folder is known to be of this run, and answers Ctrl-C."""

    def __init__(self, options: FitOptions, run: Path, output: Output) -> None:
        self.options, self.run, self.output = options, run, output

    def started(self, max_steps: int) -> None:
        """Before the first step, so that a killed run can be resumed."""
        del max_steps
        write_options(self.options, self.run)

    def finished(self, reason: str) -> None:
        """The first Ctrl-C ends the training, not the command."""
        if reason == INTERRUPTED:
            if sys.stderr.isatty():
                print(file=sys.stderr)  # the bar is still on this line
            self.output.note(
                "training was interrupted; the best model so far is being finished, and Ctrl-C "
                "once more stops at once"
            )
