"""From an orbit to a policy, or the reason why not."""

from orbitgp.errors import InputError
from orbitgp.export.orbit_steps import AXES, OWN, steps_of
from orbitgp.export.policy import LIBRARIES, Policy
from orbitgp.export.program import NAMES
from orbitgp.export.step import Step
from orbitgp.orbits.base import Orbit

REASONS = {
    OWN: "its function is code of yours, which you can call in the training loop yourself",
    "permutations": "it permutes positions of rows of numbers, not images",
    "sign flips": "it changes signs of columns of rows of numbers, not images",
}

ONLY_NUMBERS = "there is no code for it but its numbers, which 'json' has"


def export_policy(orbit: Orbit, library: str, *, leave_out: bool = False) -> Policy:
    """Export p(x_a | x) as a transform for the training loop of another library.

    Interpolation, centre, direction, order and what comes in from outside are those of the orbit:
    images differ by at most 2/255 from those that the orbit makes of the same draws.

    Parameters
    ----------
    orbit : Orbit
        As a rule the one that was learned, `estimator.orbit_`.
    library : {"torchvision", "kornia", "json"}
        Whose transform it shall be; "json" is a dictionary of all numbers with their units.
    leave_out : bool, default=False
        Leave out what the library cannot express, instead of refusing the whole.

    Returns
    -------
    Policy
        With `source`, a Python file that needs the library alone; `make()` for the transform, if
        the library is installed; and `save(path)`.

    Raises
    ------
    InputError
        If the library is unknown or cannot express the orbit; it says why, and what it can.

    See Also
    --------
    Policy : What comes of it.

    Examples
    --------
    >>> from orbitgp import Affine, export_policy
    >>> record = export_policy(Affine(-0.1, 0.1), "json").make()
    >>> record["steps"][0]["parameters"][1]["name"]
    'x-scale'
    >>> export_policy(Affine(-0.1, 0.1), "torchvision").save("augmentation.py").name
    'augmentation.py'
    """
    if library not in LIBRARIES:
        raise InputError(
            f"policies are made for {', '.join(LIBRARIES)}; got {library!r:.60}: choose one of them"
        )
    if not isinstance(orbit, Orbit):
        raise InputError(
            f"a policy is made of an orbit; got {type(orbit).__name__}: pass orbit_ of a fitted "
            "estimator, or an orbit such as orbitgp.Rotation(-0.2, 0.2)"
        )
    steps = steps_of(orbit)
    reasons = [reason_against(step, library) for step in steps]
    kept = [step for step, reason in zip(steps, reasons, strict=True) if not reason]
    missing = [step for step, reason in zip(steps, reasons, strict=True) if reason]
    left_out = tuple(step.words() for step in missing)
    unsure = tuple(found for found in orbit.learned_ranges() if not found.identified)
    policy = Policy(library, tuple(kept), left_out, unsure)
    if missing and not leave_out:
        reasoned = zip(policy.left_out, filter(None, reasons), strict=True)
        why = "; ".join(f"{words}: {reason}" for words, reason in reasoned)
        raise InputError(
            f"{library} cannot express this orbit ({why}); the closest policy that it can express "
            f"is {policy}: pass leave_out=True for that (--leave_out on the command line)"
        )
    return policy


def reason_against(step: Step, library: str) -> str:
    """Why the library cannot express a step; empty if it can."""
    if step.kind == OWN or (step.kind not in NAMES and library != "json"):
        return REASONS.get(step.kind, ONLY_NUMBERS)
    if library == "json":
        return ""
    axis = dict(step.settings).get("axis", "horizontal")
    if axis not in AXES.values():
        return f"its axis {axis} may be one of channels; give −1 for the width, −2 for the height"
    if step.kind == "noise" and len(step.parameters[0].numbers) > 1:
        return "it has a deviation for each value of an image of one size"
    return ""
