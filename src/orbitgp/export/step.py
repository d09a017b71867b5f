"""One step of a policy: a kind of transformation and the distribution of its parameters."""

from dataclasses import dataclass
from typing import Any, Literal

Distribution = Literal["uniform", "log-uniform", "normal", "choice", "fixed"]
Setting = str | int | bool | tuple[tuple[int, ...], ...] | tuple[int, ...]


@dataclass(frozen=True)
class Parameter:
    """One number of a step, drawn anew for each image.

    `numbers` are the two ends of a uniform distribution (of the logarithm, if "log-uniform"), the
    standard deviation of a normal one around 0, all values of a choice, or the value that is fixed.
    """

    name: str
    unit: str
    distribution: Distribution
    numbers: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        about = {"name": self.name, "unit": self.unit, "distribution": self.distribution}
        match self.distribution:
            case "uniform" | "log-uniform":
                return {**about, "low": self.numbers[0], "high": self.numbers[1]}
            case "choice":
                return {**about, "values": list(self.numbers)}
        name = "standard_deviation" if self.distribution == "normal" else "value"
        alone = len(self.numbers) == 1
        return {**about, name: self.numbers[0] if alone else list(self.numbers)}

    def words(self) -> str:
        """In a few words."""
        unit = f" {self.unit}" if self.unit else ""
        if self.distribution == "choice":
            return f"{self.name} one of {len(self.numbers)}"
        if len(self.numbers) > 2:
            return f"{self.name} with {len(self.numbers)} numbers"
        around = "±" if self.distribution == "normal" else ""
        return f"{self.name} {around}{' … '.join(f'{end:.4g}' for end in self.numbers)}{unit}"


@dataclass(frozen=True)
class Step:
    """A kind of transformation, its random parameters, and what else it needs to be known."""

    kind: str
    parameters: tuple[Parameter, ...] = ()
    settings: tuple[tuple[str, Setting], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        parameters = [parameter.to_dict() for parameter in self.parameters]
        settings = {name: _as_lists(value) for name, value in self.settings}
        return {"kind": self.kind, "parameters": parameters, "settings": settings}

    def words(self) -> str:
        """In a few words, without numbers that are shown as choices."""
        shown = [p.words() for p in self.parameters if p.distribution != "choice"]
        axis = dict(self.settings).get("axis")
        kind = f"{axis} {self.kind}" if isinstance(axis, str) else self.kind
        return f"{kind} ({', '.join(shown)})" if shown else kind


def _as_lists(value: Any) -> Any:
    """Lists for tuples, as JSON has them."""
    return [_as_lists(part) for part in value] if isinstance(value, tuple) else value
