"""Data that everybody has: scikit-learn's digits, and OpenML behind a local server."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from sklearn.datasets import _openml, load_digits

from orbitgp import FileError, InputError
from orbitgp.data.named import load_named
from orbitgp.data.sources import read_data, read_inputs

ARFF = """@RELATION tiny
@ATTRIBUTE a NUMERIC
@ATTRIBUTE b NUMERIC
@ATTRIBUTE colour {red, green}
@ATTRIBUTE kind {0, 1}
@DATA
1,2,red,0
3,4,green,1
5,6,red,0
7,8,green,1
"""
NAMES = ("a", "b", "colour", "kind")


class OpenML(BaseHTTPRequestHandler):
    """What openml.org answers about one data set, called tiny."""

    asked = 0

    def do_GET(self):
        type(self).asked += 1
        host = f"http://{self.headers['Host']}"
        status, body = 200, None
        match self.path.removeprefix("/api/v1/json/data/").strip("/").split("/"):
            case ["list", "data_name", "tiny", *rest] if "7" not in rest:
                found = {"did": 1, "name": "tiny", "version": 1, "status": "active"}
                body = {"data": {"dataset": [found]}}
            case ["1"]:
                about = {
                    **{"id": "1", "name": "tiny", "version": "1", "format": "ARFF"},
                    "description": "four rows",
                    **{"status": "active", "default_target_attribute": "kind", "file_id": "9"},
                    "md5_checksum": hashlib.md5(ARFF.encode()).hexdigest(),
                    "url": f"{host}/data/v1/download/9/tiny.arff",
                }
                body = {"data_set_description": about}
            case ["features", "1"]:
                kinds = {"a": "numeric", "b": "numeric"}
                features = [
                    {
                        **{"index": str(index), "name": name},
                        **{"data_type": kinds.get(name, "nominal"), "is_ignore": "false"},
                        **{"number_of_missing_values": "0"},
                        **{"is_target": str(name == "kind").lower(), "is_row_identifier": "false"},
                    }
                    for index, name in enumerate(NAMES)
                ]
                body = {"data_features": {"feature": features}}
            case ["qualities", "1"]:
                quality = [{"name": "NumberOfInstances", "value": "4"}]
                body = {"data_qualities": {"quality": quality}}
            case _ if self.path.startswith("/data/v1/download"):
                body = ARFF
            case _:
                status, body = 412, {"error": {"code": "372", "message": "No results"}}
        text = body if isinstance(body, str) else json.dumps(body)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def openml(tmp_path, monkeypatch):
    """A server in the place of openml.org, and an empty cache."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), OpenML)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = f"http://127.0.0.1:{server.server_port}"
    for name, value in vars(_openml).copy().items():
        if isinstance(value, str) and value.startswith("https://www.openml.org"):
            monkeypatch.setattr(_openml, name, value.replace("https://www.openml.org", host))
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    yield server
    server.shutdown()
    server.server_close()


def test_digits():
    data, everything = read_data("digits"), load_digits()
    assert data.x.shape == (1000, 8, 8)
    assert data.x_test.shape == (797, 8, 8)
    np.testing.assert_array_equal(np.concatenate([data.x, data.x_test]), everything.images)
    np.testing.assert_array_equal(np.concatenate([data.y, data.y_test]), everything.target)
    np.testing.assert_array_equal(read_inputs("digits"), data.x_test)
    np.testing.assert_array_equal(read_inputs("digits", split="train"), data.x)
    with pytest.raises(InputError, match="neither target nor image_size"):
        read_data("digits", target="y")


def test_openml_is_loaded_once(openml):
    data = read_data("openml:tiny")
    np.testing.assert_array_equal(data.x, [[1, 2, 0], [3, 4, 1], [5, 6, 0], [7, 8, 1]])
    assert data.y.dtype == np.int64
    assert data.y.tolist() == [0, 1, 0, 1]
    assert data.x_test is None
    asked = OpenML.asked
    np.testing.assert_array_equal(read_data("openml:tiny").x, data.x)
    assert OpenML.asked == asked, "the second time it comes from the cache"


def test_openml_with_a_target_a_version_and_a_size(openml):
    data = load_named("openml:tiny@1", target="colour", image_size=(1, 3))
    assert data.x.shape == (4, 1, 3)
    assert data.y.tolist() == ["red", "green", "red", "green"]
    with pytest.raises(InputError, match="has 3 columns, which are no images of 2 × 2"):
        load_named("openml:tiny", image_size=(2, 2))


def test_openml_says_what_went_wrong(openml):
    with pytest.raises(FileError, match=r"openml:absent could not be loaded.*look up its name"):
        load_named("openml:absent")
    with pytest.raises(FileError, match="openml:tiny@7 could not be loaded"):
        load_named("openml:tiny@7")
    with pytest.raises(FileError, match="could not be loaded"):
        load_named("openml:tiny", target="sound")
    for name in ("openml:", "openml:tiny@one"):
        with pytest.raises(InputError, match="expected openml:NAME or openml:NAME@VERSION"):
            load_named(name)
