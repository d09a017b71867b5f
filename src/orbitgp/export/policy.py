"""The distribution of an orbit, for the training loop of another library."""

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orbitgp.errors import InputError
from orbitgp.export.program import program
from orbitgp.export.record import json_source, to_record
from orbitgp.export.step import Step
from orbitgp.orbits.ranges import Range
from orbitgp.sealed import write_atomically

LIBRARIES = ("torchvision", "kornia", "json")


@dataclass(frozen=True)
class Policy:
    """What an orbit does to images, as source text and as a transform of another library.

    Made by `export_policy`.

    Parameters
    ----------
    library : {"torchvision", "kornia", "json"}
        For whose training loop it is.
    steps : tuple of Step
        The transformations in their order, with kinds, distributions, numbers and units.
    left_out : tuple of str, default=()
        The parts of the orbit that the library cannot express.
    unidentified : tuple of Range, default=()
        Learned ranges that the training data say little about; the policy has them all the same.

    See Also
    --------
    export_policy : Makes one from an orbit.

    Examples
    --------
    >>> from orbitgp import Mirror, export_policy
    >>> policy = export_policy(Mirror(), "torchvision")
    >>> "class LearnedAugmentation(v2.Transform)" in policy.source
    True
    >>> print(policy)
    horizontal mirror
    """

    library: str
    steps: tuple[Step, ...]
    left_out: tuple[str, ...] = ()
    unidentified: tuple[Range, ...] = ()

    @property
    def source(self) -> str:
        """A Python file that needs the library alone, not orbitgp; the text of JSON for "json"."""
        if self.library == "json":
            return json_source(self.steps, self.left_out, self.unidentified)
        remarks = [
            f"Left out, since {self.library} cannot express it: {name}." for name in self.left_out
        ]
        if self.unidentified:
            names = ", ".join(found.words for found in self.unidentified)
            remarks.append(
                "Part of it, though the training data say little about them (not identified): "
                f"{names}."
            )
        return program(self.library, self.steps, remarks)

    def make(self) -> Any:
        """Make the transform; a dictionary for "json".

        A transform can be pickled, as processes that load data need it.

        Returns
        -------
        torchvision.transforms.v2.Transform or other
            What the library calls a transform or an augmentation.

        Raises
        ------
        InputError
            If the library is not installed.
        """
        if self.library == "json":
            return to_record(self.steps, self.left_out, self.unidentified)
        _check_installed(self.library)
        names: dict[str, Any] = {"__name__": f"learned_{self.library}"}
        # our own text, with nothing filled in but numbers and fixed names
        exec(compile(self.source, f"<policy for {self.library}>", "exec"), names)
        kind = names["LearnedAugmentation"]
        kind.__reduce__ = lambda _: (Policy.make, (self,))
        return kind()

    def save(self, path: str | Path) -> Path:
        """Write the source to a file.

        Parameters
        ----------
        path : str or pathlib.Path
            Where to.

        Returns
        -------
        pathlib.Path
            The same.
        """
        write_atomically(Path(path), self.source.encode())
        return Path(path)

    def __str__(self) -> str:
        return ", then ".join(step.words() for step in self.steps) or "no change"


def _check_installed(library: str) -> None:
    """Whether the library can be imported; a build that does not suit torch's cannot."""
    try:
        importlib.import_module(library)
    except (ImportError, RuntimeError, OSError) as error:
        raise InputError(
            f'{library} cannot be imported ({error}): pip install "orbitgp[{library}]"; the source '
            "of the policy is in .source all the same"
        ) from None
