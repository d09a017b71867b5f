"""A device that is not there: its tensors hold CPU values, and refuse to mix with the CPU's.

Values and gradients are real, so that a whole fit runs under it and is compared with the CPU's. It
stands on the device type "meta", which needs no hardware.

- CPU tensors of one dimension or more beside such a tensor are refused, as CUDA refuses them.
- A CPU generator for a draw on the device is refused.
- torch.tensor, torch.as_tensor and Tensor.new_tensor build below the dispatcher: `Pretend` takes
  them apart above it.

FakeTensorMode does not serve: grid_sample, indexing, Module.to and .item() fail for fake "cuda".
What this cannot see: CUDA kernels, streams, speed, TF32.
"""

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

DEVICE = torch.device("meta")
MOVES = {torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default}
INDEXED = (torch.ops.aten.index, torch.ops.aten.index_put, torch.ops.aten.index_put_)
"""Operations that may be given indices on the CPU, as CUDA allows it."""


class There(torch.Tensor):
    """A tensor on the pretended device."""

    @staticmethod
    def __new__(cls, held):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=DEVICE,
            requires_grad=held.requires_grad,
        )

    def __init__(self, held):
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return run(function, args, kwargs or {})


def leaves(value):
    """All that lists, tuples and dictionaries hold."""
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in leaves(part)]
    return leaves(tuple(value.values())) if isinstance(value, dict) else [value]


def mapped(function, value):
    """The same lists, tuples and dictionaries with the function of each leaf."""
    if isinstance(value, list | tuple):
        return type(value)(mapped(function, part) for part in value)
    if isinstance(value, dict):
        return {name: mapped(function, part) for name, part in value.items()}
    return function(value)


def is_there(device) -> bool:
    return device is not None and torch.device(device).type == DEVICE.type


def run(function, args, kwargs):
    """The operation on held values, if all of its tensors are on one side."""
    tensors = [leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    there, wanted = any(isinstance(t, There) for t in tensors), kwargs.get("device")
    if any(t.device == DEVICE and not isinstance(t, There) for t in tensors):
        raise RuntimeError(f"a tensor without values in {function}, such as x[[0]] makes them")
    if kwargs.get("generator") is not None and (there or is_there(wanted)):
        raise RuntimeError(f"a CPU generator for another device in {function}")
    if there and function not in MOVES:
        free = leaves(args[1]) if function.overloadpacket in INDEXED else []
        bound = [t for t in tensors if not any(t is index for index in free)]
        others = [t for t in bound if not isinstance(t, There) and t.dim() > 0]
        if others:
            raise RuntimeError(
                f"two devices in {function}: {[tuple(t.shape) for t in others]} on the CPU"
            )
    held = lambda leaf: leaf.held if isinstance(leaf, There) else leaf  # noqa: E731
    inner_args, inner_kwargs = mapped(held, args), mapped(held, kwargs)
    if wanted is not None:
        inner_kwargs["device"] = torch.device("cpu")
    out = function(*inner_args, **inner_kwargs)
    if function is torch.ops.aten.copy_.default:
        return args[0]
    ends_there = there if wanted is None else is_there(wanted)

    def wrapped(value):
        if not isinstance(value, torch.Tensor):
            return value
        for tensor in tensors:  # in place
            if isinstance(tensor, There) and tensor.held is value:
                return tensor
        return There(value) if ends_there else value

    return mapped(wrapped, out)


class Operations(TorchDispatchMode):
    """Also operations with no argument there, such as `torch.zeros(..., device=DEVICE)`."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return run(function, args, kwargs or {})


class Pretend(TorchFunctionMode):
    """`with Pretend(): model.to(DEVICE)` and so on."""

    def __enter__(self):
        self.operations = Operations()
        self.operations.__enter__()
        return super().__enter__()

    def __exit__(self, *error):
        ended = super().__exit__(*error)
        self.operations.__exit__(*error)
        return ended

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function in (torch.tensor, torch.as_tensor) and is_there(kwargs.get("device")):
            kwargs.pop("device")
            return function(*args, **kwargs).to(DEVICE)
        if function in (torch.Tensor.tolist, torch.Tensor.numpy) and isinstance(args[0], There):
            if function is torch.Tensor.numpy:
                raise TypeError("a tensor on another device has no numpy(); use cpu() first")
            return args[0].cpu().tolist()
        if function is torch.Tensor.new_tensor and isinstance(args[0], There):
            device = kwargs.pop("device", DEVICE)
            kwargs.setdefault("dtype", args[0].dtype)
            return torch.tensor(*args[1:], **kwargs).to(device)
        return function(*args, **kwargs)
