"""A module as a file that PyTorch or an ONNX runtime loads, without orbitgp."""

import contextlib
import importlib
import io
import json
import logging
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from orbitgp.errors import InputError

OPSET = 20
"""The first with GridSample as PyTorch has it."""

MAX_BYTES = 2**31 - 1
"""Of an ONNX file, whose format counts bytes in 31 bits."""

METADATA = "orbitgp.json"
SMALLEST = 1e-30
"""A probability below which its logarithm does not matter."""


def exported(module: nn.Module, shape: Sequence[int]) -> torch.export.ExportedProgram:
    """The graph for any number of inputs of this shape, in float32."""
    inputs = torch.zeros(2, *shape)
    batch = torch.export.Dim("batch", min=1)
    with torch.no_grad():
        program = torch.export.export(
            module.eval(), (inputs,), dynamic_shapes=({0: batch},), strict=False
        )
    for part in (*program.state_dict.values(), *program.constants.values()):
        if isinstance(part, Tensor):  # files hold no views of larger tensors
            part.data = part.detach().clone(memory_format=torch.contiguous_format)
    return program


def pt2_bytes(program: torch.export.ExportedProgram, metadata: Mapping[str, Any]) -> bytes:
    """What `torch.export.load` reads; the metadata are one of its extra files."""
    buffer = io.BytesIO()
    torch.export.save(program, buffer, extra_files={METADATA: json.dumps(metadata)})
    return buffer.getvalue()


def onnx_bytes(program: torch.export.ExportedProgram, metadata: Mapping[str, Any]) -> bytes:
    """An ONNX model with opset 20; the metadata are among its properties."""
    translations = _translations()
    size = sum(t.numel() * t.element_size() for t in program.state_dict.values())
    if size > MAX_BYTES:
        raise InputError(
            f"an ONNX file holds at most 2 GB, and this predictor has {size / 1e9:.1f} GB: make it "
            "smaller with compact=0.01, or write a .pt2 file"
        )
    with warnings.catch_warnings(), _without_log("onnxscript"):
        warnings.simplefilter("ignore")  # those that parts of the exporter give one another
        made: Any = torch.onnx.export(
            program,
            (),
            dynamo=True,
            opset_version=OPSET,
            custom_translation_table=translations,
            input_names=["inputs"],
            output_names=metadata["outputs"],
            verbose=False,
            optimize=False,  # takes minutes for what the runtime does again
        )
        optimizer = importlib.import_module("onnxscript.optimizer")
        optimizer.fold_constants(made.model)
        optimizer.remove_unused_nodes(made.model)
    model = made.model_proto
    for key, value in metadata.items():
        model.metadata_props.add(key=key, value=json.dumps(value, ensure_ascii=False))
    return model.SerializeToString()


@contextlib.contextmanager
def _without_log(name: str) -> Iterator[None]:
    """Remarks of the exporter on what it leaves as it is."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _translations() -> dict[Callable[..., Any], Callable[..., Any]]:
    """What ONNX has no operator for: log Φ, as far as it matters for a probability."""
    try:
        importlib.import_module("onnx")
        op = importlib.import_module("onnxscript").opset20
    except ImportError as error:
        raise InputError(
            f"ONNX files need packages that are not installed ({error}): pip install "
            '"orbitgp[onnx]"'
        ) from None

    def log_ndtr(x: Any) -> Any:
        narrow = op.Cast(x, to=1)  # the runtime has erf in float32
        below = op.Mul(op.Add(op.Erf(op.Mul(narrow, math.sqrt(0.5))), 1.0), 0.5)
        return op.Cast(op.Log(op.Max(below, SMALLEST)), to=11)  # of float64, as it came

    return {torch.ops.aten.special_log_ndtr.default: log_ndtr}
