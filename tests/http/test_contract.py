"""The contract at /openapi.yaml and /openapi.json: every call of it is answered as it says."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from client import PROGRAM_S, ROOT

CONTRACT = json.loads((ROOT / "proto/openapi.json").read_text())
OPERATIONS = [
    (method, path, operation)
    for path, operations in CONTRACT["paths"].items()
    for method, operation in operations.items()
]
each_operation = pytest.mark.parametrize(
    "method, path, operation", OPERATIONS, ids=[f"{m} {p}" for m, p, _ in OPERATIONS]
)


def resolve(node):
    while "$ref" in node:
        node_at = CONTRACT
        for key in node["$ref"].removeprefix("#/").split("/"):
            node_at = node_at[key]
        node = node_at
    return node


def example_of(parameter):
    schema = resolve(parameter.get("schema", {}))
    return parameter.get("example", schema.get("const", schema.get("enum", [None])[0]))


def targets(path, operation):
    """The path with an example for every parameter that it needs."""
    query = []
    for parameter in map(resolve, operation.get("parameters", [])):
        if not parameter.get("required"):
            continue
        value = example_of(parameter)
        assert value is not None, f"{path}: {parameter['name']} has no example"
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", value)
        else:
            query.append(f"{parameter['name']}={value}")
    return path + ("?" + "&".join(query) if query else "")


def bodies(operation):
    """Every example of a JSON body; None where there is none to send."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    found = [example["value"] for example in content.get("examples", {}).values()]
    return found + ([content["example"]] if "example" in content else []) or [None]


def check_answer(answer, operation):
    """It has a status, a type and a form that the contract tells of."""
    told = resolve(operation["responses"].get(str(answer.status), operation["responses"]["default"]))
    kind = answer.headers["Content-Type"]
    assert kind in told["content"], f"{answer.status} {kind}: {answer.body[:200]}"
    if not kind.endswith("json"):
        return
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema cannot be had")
    schema = told["content"][kind]["schema"] | {"components": CONTRACT["components"]}
    jsonschema.Draft202012Validator(schema).validate(answer.json())


@each_operation
def test_every_example_is_answered_as_the_contract_says(daemon, method, path, operation):
    path = targets(path, operation)
    for body in bodies(operation):
        sent = None if body is None else json.dumps(body)
        headers = {} if body is None else {"Content-Type": "application/json"}
        answer = daemon.call(method.upper(), path, sent, headers)
        assert answer.status == 200, f"{path}: {answer.body[:300]}"
        check_answer(answer, operation)
        if sent is not None:
            jsonschema = pytest.importorskip("jsonschema", reason="jsonschema cannot be had")
            content = operation["requestBody"]["content"]["application/json"]
            schema = content["schema"] | {"components": CONTRACT["components"]}
            jsonschema.Draft202012Validator(schema).validate(body)


@each_operation
def test_every_refusal_has_the_form_that_the_contract_says(daemon, method, path, operation):
    path = targets(path, operation)
    answer = daemon.call(method.upper(), path, b"x" * 9000, {"Content-Type": "application/json"})
    assert answer.status >= 400
    check_answer(answer, operation)


def test_every_header_of_our_own_stands_in_the_contract(daemon):
    """Of results, which tell most when they are not JSON, and of refusals of all kinds."""
    operations = CONTRACT["paths"]
    dot, infer = operations["/v1/dot"]["post"], operations["/v2/models/{model}/infer"]["post"]
    whole = {"a": [1e308], "b": [1e308], "id": "7", "diagnostics": True}
    raw, brotli = {"Accept": "application/octet-stream"}, {"Content-Encoding": "br"}
    served = [
        (dot, daemon.dot(whole, headers=raw)),
        (dot, daemon.dot({"a": [[1], [2]], "b": [3]}, headers=raw)),
        (dot, daemon.dot("{}", headers=brotli)),
        (dot, daemon.dot({"a": [1], "b": [2], "device": "cuda"})),
        (infer, daemon.call("POST", "/v2/models/dot/infer", b"{}", brotli)),
        (infer, daemon.call("POST", "/v2/models/dot/infer?nonesuch=1", b"{}")),
    ]
    for operation, answer in served:
        responses = operation["responses"]
        told = resolve(responses.get(str(answer.status), responses["default"]))["headers"]
        assert set(answer.headers) - {"Date", "Content-Length", "Content-Type"} <= set(told)


def test_the_contract_is_served_as_it_was_written(daemon):
    for name, kind in (("openapi.yaml", "application/yaml"), ("openapi.json", "application/json")):
        answer = daemon.get("/" + name)
        assert answer.status == 200 and answer.headers["Content-Type"] == kind
        assert answer.body == (ROOT / "proto" / name).read_bytes()
        assert daemon.call("HEAD", "/" + name).headers["Content-Length"] == str(len(answer.body))


def test_the_json_form_is_made_of_the_yaml_form():
    pytest.importorskip("yaml", reason="PyYAML cannot be had")
    done = subprocess.run([sys.executable, ROOT / "proto/openapi.py"], capture_output=True)
    assert done.stdout == (ROOT / "proto/openapi.json").read_bytes(), "run proto/openapi.py"


def nodes(node):
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from nodes(child)


def test_generators_of_clients_find_a_schema_where_they_look_for_one():
    """They stop at a field whose schema is true or false, and at an array of who knows what."""
    for node in nodes(CONTRACT["components"]["schemas"]):
        assert node.get("type") != "array" or "items" in node, node
        fields = node.get("properties", {})
        assert all(isinstance(schema, dict) for schema in fields.values()), fields


def test_every_option_and_field_stands_in_the_contract(daemon):
    """Those that the daemon lists when it is asked for one that it does not know."""
    query = {resolve(p)["name"] for p in CONTRACT["paths"]["/v1/dot"]["post"]["parameters"]}
    told = daemon.get("/v1/dot?nonesuch=1").problem(400, "bad-option")["detail"]
    assert set(re.search(r"known are ([\w, ]+)", told)[1].split(", ")) - {"a", "b"} <= query
    schemas = CONTRACT["components"]["schemas"]
    fields = set(schemas["DotOptions"]["properties"]) | {"a", "b", "pairs"}
    told = daemon.dot({"nonesuch": 1}).problem(400, "bad-option")["detail"]
    assert set(re.search(r"known are ([\w, ]+)", told)[1].split(", ")) == fields


LAB = [path for path in CONTRACT["paths"] if path.startswith("/v1/lab/")]


@pytest.mark.parametrize("path", LAB)
def test_every_field_of_the_lab_stands_in_the_contract(daemon, path):
    def known(body, *problem):
        told = daemon.call("POST", path, json.dumps(body)).problem(*problem)["detail"]
        return set(re.search(r"known are ([\w, ]+)", told)[1].split(", "))

    body = CONTRACT["paths"][path]["post"]["requestBody"]["content"]["application/json"]
    fields = body["schema"]["properties"]
    assert known({"nonesuch": 1}, 400, "bad-option") == set(fields)
    if "scheme" in fields:
        schemes = known(body["example"] | {"scheme": "nonesuch"}, 422, "bad-value")
        assert schemes == set(fields["scheme"]["enum"])


def test_schemathesis_finds_no_answer_that_the_contract_does_not_tell_of(daemon, tmp_path):
    """Requests made up from the schemas, right ones and wrong ones; the same in every run."""
    program = os.environ.get("DOTD_SCHEMATHESIS") or shutil.which("schemathesis")
    if program is None:
        pytest.skip("schemathesis cannot be had")
    settings = ["--config-file", str(ROOT / "tests/http/schemathesis.toml")]
    options = ["--phases", "examples,coverage,fuzzing", "--max-examples", "20", "--seed", "1"]
    url = f"http://127.0.0.1:{daemon.port}/openapi.json"
    command = [program, *settings, "run", url, *options, "--suppress-health-check", "all"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=PROGRAM_S
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr
    assert re.search(r"\d{3,} generated, \d{3,} passed", done.stdout), done.stdout[-2000:]
