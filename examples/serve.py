"""A predictor file over HTTP: `MODEL=model.onnx uvicorn serve:app --limit-concurrency 64`."""

import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from fastapi import FastAPI, HTTPException, Request
from onnxruntime import InferenceSession

MAX_BYTES, MAX_INPUTS, MAX_SECONDS = 4_000_000, 256, 10.0
app = FastAPI(title="orbitgp predictor")
worker = ThreadPoolExecutor(1)  # one call at a time, since a session has threads of its own
loading = worker.submit(InferenceSession, os.environ["MODEL"])


@app.get("/health")
async def health() -> dict:
    return {"status": "alive"}


@app.get("/ready")
async def ready() -> dict:
    if not loading.done():
        raise HTTPException(503, "the predictor is still being loaded")
    about = loading.result().get_modelmeta().custom_metadata_map
    return {name: json.loads(text) for name, text in about.items()}


@app.post("/predict")
async def predict(request: Request) -> dict:
    about = await ready()
    try:
        async with asyncio.timeout(MAX_SECONDS):
            inputs = {"inputs": checked(await body_of(request), about["inputs"])}
            call = worker.submit(loading.result().run, about["outputs"], inputs)
            found = await asyncio.wrap_future(call)
    except TimeoutError:
        raise HTTPException(503, f"no answer within {MAX_SECONDS:g} seconds") from None
    named = zip(about["outputs"], (part.tolist() for part in found), strict=True)
    return dict(named, classes=about["classes"])


async def body_of(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        if len(body := body + part) > MAX_BYTES:
            raise HTTPException(413, f"a body has at most {MAX_BYTES:,} bytes")
    return body


def checked(body: bytes, shape: list[int]) -> np.ndarray:
    try:
        inputs = np.asarray(json.loads(body)["inputs"], dtype=np.float32)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise HTTPException(400, f'no JSON of {{"inputs": numbers}}: {error!s:.80}') from None
    if list(inputs.shape[1:]) != shape or len(inputs) > MAX_INPUTS or not np.isfinite(inputs).all():
        raise HTTPException(422, f"inputs are 1 to {MAX_INPUTS} lists of shape {shape}, all finite")
    return inputs
