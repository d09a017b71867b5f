"""Whether a value from JSON has the form that a TypedDict says, key for key."""

import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict


def conforms(value, form, place="the record"):
    """Asserts it, and names the place where it does not."""
    if is_typeddict(form):
        hints = get_type_hints(form)
        assert isinstance(value, dict), f"{place}: {value!r}"
        assert value.keys() == hints.keys(), f"{place}: {value.keys() ^ hints.keys()}"
        for name, hint in hints.items():
            conforms(value[name], hint, f"{place}.{name}")
        return
    origin, inner = get_origin(form), get_args(form)
    if origin in (Union, types.UnionType):
        assert any(fits(value, part) for part in inner), f"{place}: {value!r} is none of {inner}"
    elif origin is Literal:
        assert value in inner, f"{place}: {value!r} is none of {inner}"
    elif origin is list:
        assert isinstance(value, list), f"{place}: {value!r}"
        for number, part in enumerate(value):
            conforms(part, inner[0], f"{place}[{number}]")
    elif origin is dict:
        assert isinstance(value, dict), f"{place}: {value!r}"
        for name, part in value.items():
            conforms(part, inner[1], f"{place}[{name!r}]")
    elif form is not Any:
        kinds = (int, float) if form is float else (form,)
        right = isinstance(value, kinds) and (form is bool or not isinstance(value, bool))
        assert right, f"{place}: {value!r} is no {form}"


def fits(value, form):
    try:
        conforms(value, form)
    except AssertionError:
        return False
    return True
