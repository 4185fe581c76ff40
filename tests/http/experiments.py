"""What the lab's tests ask it."""

import json

CALLS = ["reduce", "race", "shift", "barrier", "rounding", "measure"]
GOOD = {
    "reduce": {"a": [1, 2, 3], "b": [4, 5, 6]},
    "race": {"n": 100},
    "shift": {"n": 8, "barriers": 2},
    "barrier": {"n": 8},
    "rounding": {"a": [1, 2, 3], "b": [4, 5, 6], "orders": 2},
    "measure": {"kernel": "tree", "n": 64},
}


def ask(daemon, call, body=None, **fields):
    """POST /v1/lab/CALL with an object, or with a body as it is."""
    body = json.dumps(fields) if body is None else body
    return daemon.call("POST", f"/v1/lab/{call}", body, {"Content-Type": "application/json"})
