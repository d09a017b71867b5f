"""The serving example, really started: many requests, and many that make no sense."""

import http.client
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from orbitgp import InvariantGPClassifier, export_predictor
from tests.conftest import QUICK, without_checks_of_shapes

pytest.importorskip("onnxscript")
pytest.importorskip("uvicorn")
pytestmark = pytest.mark.usefixtures("untyped")

EXAMPLES = Path(__file__).parents[2] / "examples"
NUM_REQUESTS, NUM_MALFORMED, NUM_CLIENTS = 1000, 200, 4
WAIT = 60


@pytest.fixture(scope="module")
@without_checks_of_shapes()
def model():
    x, y = load_digits(return_X_y=True)
    model = InvariantGPClassifier("rotation", settings=QUICK, random_state=0)
    return model.fit(x[:80].reshape(-1, 8, 8), y[:80])


@pytest.fixture(scope="module")
def port(model, tmp_path_factory):
    path = export_predictor(model, tmp_path_factory.mktemp("served") / "model.onnx")
    command = [sys.executable, "-m", "uvicorn", "serve:app", "--port", "0", "--no-access-log"]
    environment = {**os.environ, "MODEL": str(path)}
    with subprocess.Popen(
        command, cwd=EXAMPLES, env=environment, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr is not None
        for line in server.stderr:
            if found := re.search(r"running on http://127\.0\.0\.1:(\d+)", line):
                break
        else:
            pytest.fail("uvicorn did not start")
        rest = threading.Thread(target=server.stderr.read, daemon=True)
        rest.start()
        start = time.monotonic()
        while asked(int(found[1]), "GET", "/ready")[0] != 200:
            assert time.monotonic() < start + WAIT
            time.sleep(0.1)
        yield int(found[1])
        server.terminate()


def asked(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def malformed(place):
    """A body that no server should answer with numbers."""
    choice = random.Random(place)
    row = [[0.0] * 8] * 8
    wrong = [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"inputs": [' + b"9" * 5000 + b"]}",
        b" " * 4_100_000,
        choice.randbytes(choice.randrange(1, 200)),
        *(
            json.dumps(value).encode()
            for value in (
                None,
                choice.random(),
                {"input": [row]},
                {"inputs": []},
                {"inputs": row},
                {"inputs": [row] * 257},
                {"inputs": [[*row, *row]]},
                {"inputs": [[*row[:7], row[0][:5]]]},
                {"inputs": [[*row[:7], ["a"] * 8]]},
                {"inputs": [[*row[:7], [float("nan")] * 8]]},
                {"inputs": [[*row[:7], [1e300] * 8]]},
                {"inputs": {"0": row}},
                {"inputs": [None]},
            )
        ),
    ]
    return wrong[place % len(wrong)]


def test_the_server_answers_and_refuses(port, model, capsys):
    assert asked(port, "GET", "/health") == (200, {"status": "alive"})
    status, about = asked(port, "GET", "/ready")
    assert (status, about["inputs"], about["outputs"]) == (200, [8, 8], ["probabilities"])

    images = load_digits().images[:NUM_REQUESTS].tolist()
    statuses, found, seconds = answers(port, images)
    assert set(statuses) == {200}
    expected = model.predict_proba(np.array(images))
    np.testing.assert_allclose(np.array(found), expected, rtol=0, atol=1e-5)
    half, most = (1000 * np.quantile(seconds, level) for level in (0.5, 0.99))
    with capsys.disabled():
        print(f" [{NUM_REQUESTS} requests: p50 {half:.1f} ms, p99 {most:.1f} ms] ", end="")

    for place in range(NUM_MALFORMED):
        body = malformed(place)
        status, answer = asked(port, "POST", "/predict", body)
        assert 400 <= status < 500, body[:80]
        assert answer["detail"]
    assert asked(port, "GET", "/predict")[0] == 405
    assert asked(port, "GET", "/ready")[0] == 200


def answers(port, images):
    """Status, probabilities and seconds of a request for each image, from several clients."""

    def timed(image):
        start = time.perf_counter()
        status, found = asked(port, "POST", "/predict", json.dumps({"inputs": [image]}))
        return status, found["probabilities"][0], time.perf_counter() - start

    with ThreadPoolExecutor(NUM_CLIENTS) as clients:
        return zip(*clients.map(timed, images), strict=True)
