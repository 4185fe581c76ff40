"""POST /v1/dot with JSON: every form of operands, and everything that is not one."""

import json

import pytest

FLOAT32_MAX = 3.4028234663852886e38


def result_of(daemon, request, query=""):
    return daemon.dot(request, query).ok()["result"]


@pytest.mark.every_build
def test_two_vectors_give_a_scalar(daemon):
    answer = daemon.dot({"a": [1, 2, 3], "b": [4, 5, 6]}).ok()
    assert (answer["result"], answer["shape"], answer["n"]) == (32.0, [], 3)
    assert answer["bits"] == "0x4040000000000000"


def test_rows_are_multiplied_pairwise(daemon):
    answer = daemon.dot({"a": [[1, 2], [3, 4]], "b": [[5, 6], [7, 8]]}).ok()
    assert (answer["result"], answer["shape"], answer["n"]) == ([17.0, 53.0], [2], 2)


def test_a_vector_is_multiplied_with_every_row(daemon):
    assert result_of(daemon, {"a": [[1, 2], [3, 4]], "b": [10, 1]}) == [12.0, 34.0]
    assert result_of(daemon, {"a": [10, 1], "b": [[1, 2], [3, 4]]}) == [12.0, 34.0]


def test_every_row_with_every_row_gives_a_matrix(daemon):
    answer = daemon.dot({"a": [[[1, 0]], [[0, 1]], [[1, 1]]], "b": [[2, 3], [4, 5]]}).ok()
    assert answer["shape"] == [3, 2]
    assert answer["result"] == [[2.0, 4.0], [3.0, 5.0], [5.0, 9.0]]
    assert [len(row) for row in answer["bits"]] == [2, 2, 2]
    assert [len(row) for row in answer["error_bound"]] == [2, 2, 2]


def test_pairs_of_differing_lengths_give_a_list(daemon):
    pairs = [{"a": [1], "b": [2]}, {"a": [1, 2], "b": [3, 4]}, {"a": [], "b": []}]
    answer = daemon.dot({"pairs": pairs}).ok()
    assert answer["result"] == [2.0, 11.0, 0.0]
    assert answer["n"] == [1, 2, 0]


def test_empty_vectors_give_plus_zero(daemon):
    answer = daemon.dot({"a": [], "b": []}).ok()
    assert (answer["result"], answer["bits"], answer["n"]) == (0.0, "0x0000000000000000", 0)
    assert (answer["error_bound"], answer["flags"]) == (0.0, [])


def test_an_exact_zero_is_plus_zero(daemon):
    assert daemon.dot({"a": [0.0], "b": [-1]}).ok()["bits"] == "0x0000000000000000"


def test_numbers_are_rounded_once_to_dtype(daemon):
    """Just above the midpoint of two float32 values: by way of float64 it would go down."""
    text = '{"a":[1.00000005960464478],"b":[1],"dtype":"float32"}'
    assert result_of(daemon, text) == 1.0000001192092896
    for query in ("?dtype=float32", ""):
        later = '{"b":[1],"a":[1.00000005960464478]' + (',"dtype":"f32"}' if not query else "}")
        assert result_of(daemon, later, query) == 1.0000001192092896


def test_default_dtype_is_float64(daemon):
    answer = daemon.dot('{"a":[0.1],"b":[1]}').ok()
    assert (answer["dtype"], answer["result_dtype"], answer["result"]) == (
        "float64",
        "float64",
        0.1,
    )


def test_result_dtype_float32_rounds_once_more(daemon):
    answer = daemon.dot({"a": [0.1], "b": [1], "result_dtype": "float32"}).ok()
    assert (answer["result_dtype"], answer["result"], answer["bits"]) == (
        "float32",
        0.1,
        "0x3dcccccd",
    )
    assert abs(0.10000000149011612 - 0.1) <= answer["error_bound"] < 1e-8


def test_result_beyond_float32_is_infinity_with_a_flag(daemon):
    answer = daemon.dot({"a": [1e200], "b": [1], "result_dtype": "float32"}).ok()
    assert (answer["result"], answer["result_text"]) == (None, "Infinity")
    assert "overflow" in answer["flags"]


@pytest.mark.parametrize("alias", ["float32", "f32", "<f4", "FP32"])
def test_aliases_name_the_same_dtype(daemon, alias):
    assert daemon.dot({"a": [1], "b": [2], "dtype": alias}).ok()["dtype"] == "float32"


@pytest.mark.parametrize(
    "a, text, flag",
    [
        ("NaN", "NaN", "nan_input"),
        ('"NaN"', "NaN", "nan_input"),
        ("Infinity", "Infinity", None),
        ('"-Infinity"', "-Infinity", None),
    ],
)
def test_non_finite_operands_give_null_and_a_text(daemon, a, text, flag):
    answer = daemon.dot(f'{{"a":[{a},1],"b":[2,3]}}').ok()
    assert (answer["result"], answer["result_text"]) == (None, text)
    assert flag is None or flag in answer["flags"]


def test_infinity_times_zero_is_nan_and_invalid(daemon):
    answer = daemon.dot('{"a":[Infinity],"b":[0]}').ok()
    assert (answer["result_text"], answer["bits"]) == ("NaN", "0x7ff8000000000000")
    assert "invalid" in answer["flags"]


def test_one_infinite_result_leaves_the_others_finite(daemon):
    answer = daemon.dot('{"a":[[1],[Infinity]],"b":[2]}').ok()
    assert (answer["result"], answer["result_text"]) == ([2.0, None], [None, "Infinity"])


def test_subnormals_count(daemon):
    assert result_of(daemon, {"a": [5e-324], "b": [1]}) == 5e-324


def test_partial_sums_beyond_the_range_do_not_decide(daemon):
    assert result_of(daemon, {"a": [1e308, 1e308, -1e308], "b": [1, 1, 1]}) == 1e308


def test_id_is_echoed(daemon):
    assert daemon.dot({"a": [1], "b": [2], "id": 'r-17 \u20ac"\\'}).ok()["id"] == 'r-17 \u20ac"\\'
    assert "id" not in daemon.dot({"a": [1], "b": [2]}).ok()


def test_diagnostics_tell_how_hard_the_sum_is(daemon):
    answer = daemon.dot({"a": [3, -1], "b": [1, 1], "diagnostics": True}).ok()
    assert (answer["sum_abs"], answer["condition"]) == (4.0, 2.0)
    assert "sum_abs" not in daemon.dot({"a": [3], "b": [1]}).ok()


def test_conjugate_changes_nothing_for_real_numbers(daemon):
    assert result_of(daemon, {"a": [1, 2], "b": [3, 4], "conjugate": True}) == 11.0


def test_options_come_from_query_or_body(daemon):
    assert daemon.dot({"a": [1], "b": [2]}, "?dtype=float32&id=q").ok()["dtype"] == "float32"
    both = daemon.dot({"a": [1], "b": [2], "dtype": "float32"}, "?dtype=f32").ok()
    assert both["dtype"] == "float32"


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "APPLICATION/JSON",
        "application/json; charset=utf-8",
        "text/json",
        "application/vnd.example+json",
        "application/x-www-form-urlencoded",
    ],
)
def test_types_that_mean_json(daemon, content_type):
    answer = daemon.dot(' {"a":[1],"b":[2]}', headers={"Content-Type": content_type})
    assert answer.ok()["result"] == 2.0


def test_no_content_type_means_json(daemon):
    assert daemon.call("POST", "/v1/dot", b'{"a":[1],"b":[2]}').ok()["result"] == 2.0


@pytest.mark.parametrize("content_type", ["application/json", "application/x-www-form-urlencoded"])
def test_a_byte_order_mark_is_skipped(daemon, content_type):
    body = b'\xef\xbb\xbf{"a":[1],"b":[2]}'
    assert daemon.dot(body, headers={"Content-Type": content_type}).ok()["result"] == 2.0


def test_escaped_keys_are_keys(daemon):
    assert result_of(daemon, '{"\\u0061":[1,2],"b":[3,4]}') == 11.0


def test_white_space_may_stand_anywhere(daemon):
    assert result_of(daemon, '\r\n{\t"a" :\n[ 1 , 2 ]\r, "b": [3,\n4] }\n ') == 11.0


def test_a_long_vector_arrives_in_pieces(daemon):
    n = 100_000
    answer = daemon.dot({"a": [0.5] * n, "b": [2] * n}).ok()
    assert (answer["result"], answer["n"]) == (100000.0, n)


SYNTAX = [
    ("[1,2]", None),
    ("3", 0),
    ('{"a":[1,2}', 9),
    ('{"a":[1,2,],"b":[1,2]}', 10),
    ('{"a":[1],"b":[2]', None),
    ('{"a":[1],"b":[2]} x', None),
    ('{"a":[01],"b":[1]}', None),
    ('{"a":[+1],"b":[1]}', 6),
    ('{"a":[1.],"b":[1]}', None),
    ('{"a":[.5],"b":[1]}', 6),
    ('{"a" [1],"b":[1]}', None),
    ("{'a':[1]}", None),
    ('{"a":[1],"b":[2],}', None),
    ('{"a":[1] "b":[2]}', None),
    ("\x00", 0),
]


@pytest.mark.parametrize("body, offset", SYNTAX)
def test_what_is_not_json_is_400_with_an_offset(daemon, body, offset):
    problem = daemon.dot(body).problem(400, "bad-syntax")
    assert 0 <= problem["offset"] <= len(body)
    assert offset is None or problem["offset"] == offset, problem


def test_bytes_that_are_not_utf8_are_400(daemon):
    daemon.dot(b'{"a":[1],"b":[2],"id":"\xff"}').problem(400, "bad-syntax")


@pytest.mark.parametrize("body", ["", "  \n"])
def test_an_empty_body_is_400_and_says_so(daemon, body):
    assert "empty" in daemon.dot(body).problem(400, "bad-syntax")["detail"]


def test_form_data_that_is_not_json_is_refused(daemon):
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    daemon.dot("a=1,2&b=3,4", headers=headers).problem(400, "bad-syntax")


VALUES = [
    ('{"a":[1,"x"],"b":[1,2]}', "/a/1"),
    ('{"a":[1,null],"b":[1,2]}', "/a/1"),
    ('{"a":[1,true],"b":[1,2]}', "/a/1"),
    ('{"a":[1],"b":[1e999]}', "/b/0"),
    ('{"dtype":"float32","a":[1,3.5e38],"b":[1,2]}', "/a/1"),
    ('{"a":[1,3.5e38],"b":[1,2],"dtype":"float32"}', "/a/1"),
    ('{"pairs":[{"a":[1],"b":[1]},{"a":[1],"b":[-1e999]}]}', "/pairs/1/b/0"),
    ('{"a":1,"b":[2]}', "/a"),
    ('{"a":[2],"b":"x"}', "/b"),
    ('{"pairs":3}', "/pairs"),
    ('{"a":[1],"b":[2],"timeout_ms":-1}', "/timeout_ms"),
    ('{"a":[1],"b":[2],"timeout_ms":1.5}', "/timeout_ms"),
    ('{"a":[1],"b":[2],"diagnostics":"yes"}', "/diagnostics"),
    ('{"a":[1],"b":[2],"id":7}', "/id"),
    ('{"a":[1],"b":[2],"dtype":7}', "/dtype"),
    ('{"a":[1],"b":[2],"device":"tpu"}', "/device"),
    ('{"a":[1],"b":[2],"accuracy":"best"}', "/accuracy"),
    (json.dumps({"a": [1], "b": [2], "id": "x" * 129}), "/id"),
    ('{"a":[[[[[[[[[1]]]]]]]]],"b":[1]}', None),
]


@pytest.mark.parametrize("body, pointer", VALUES)
def test_values_that_cannot_be_are_422_with_a_pointer(daemon, body, pointer):
    problem = daemon.dot(body).problem(422, "bad-value")
    assert pointer is None or problem["pointer"] == pointer, problem


@pytest.mark.parametrize("body", ['{"a":[1]}', '{"b":[1]}', "{}"])
def test_a_missing_operand_is_422(daemon, body):
    daemon.dot(body).problem(422, "bad-value")


OPTIONS = [
    ('{"a":[1],"b":[2],"c":3}', "c"),
    ('{"a":[1],"a":[1],"b":[2]}', "a"),
    ('{"a":[1],"b":[2],"id":"x","id":"x"}', "id"),
    ('{"a":[1],"b":[2],"pairs":[]}', "pairs"),
    ('{"pairs":[{"a":[1],"b":[2],"x":0}]}', "x"),
    ('{"a":[1],"\\u0061":[1],"b":[2]}', "0061"),
]


@pytest.mark.parametrize("body, key", OPTIONS)
def test_unknown_and_repeated_keys_are_400_and_named(daemon, body, key):
    assert key in daemon.dot(body).problem(400, "bad-option")["detail"]


def test_query_and_body_may_not_contradict(daemon):
    body = {"a": [1], "b": [2], "dtype": "float32"}
    assert "dtype" in daemon.dot(body, "?dtype=float64").problem(400, "bad-option")["detail"]
    assert (
        "nonsense"
        in daemon.dot({"a": [1], "b": [2]}, "?nonsense=1").problem(400, "bad-option")["detail"]
    )


SHAPES = [
    ('{"a":[1,2],"b":[1,2,3]}', ("2", "3")),
    ('{"a":[[1,2],[3,4]],"b":[[1,2],[3,4],[5,6]]}', ("(2,2)", "(3,2)")),
    ('{"a":[[1],[1,2]],"b":[1]}', ()),
    ('{"a":[1,[2]],"b":[1]}', ()),
    ('{"a":[[]],"b":[1]}', ()),
    ('{"pairs":[{"a":[1],"b":[2]},{"a":[1],"b":[2,3]}]}', ()),
]


@pytest.mark.parametrize("body, words", SHAPES)
def test_shapes_that_do_not_match_are_422_and_shown(daemon, body, words):
    detail = daemon.dot(body).problem(422, "length-mismatch")["detail"].replace(" ", "")
    assert all(word in detail for word in words), detail


def test_unknown_dtype_is_422_listing_those_known(daemon):
    problem = daemon.dot({"a": [1], "b": [2], "dtype": "float99"}).problem(422, "unknown-dtype")
    assert "float32" in problem["detail"] and "float64" in problem["detail"]


def test_accuracy_is_exact_unless_fast_is_asked_for(daemon):
    request = {"a": [1e16, 1, -1e16], "b": [1, 1, 1]}
    assert daemon.dot(request).ok()["result"] == 1.0
    assert daemon.dot(request | {"accuracy": "exact"}).ok()["accuracy"] == "exact"
    fast = daemon.dot(request | {"accuracy": "fast"}).ok()
    assert fast["accuracy"] == "fast" and abs(fast["result"] - 1) <= fast["error_bound"]


def test_unknown_kernel_is_422(daemon):
    daemon.dot({"a": [1], "b": [2], "kernel": "nonesuch"}).problem(422, "unknown-kernel")


def test_references_are_refused_while_not_offered(daemon):
    daemon.dot('{"a":{"ref":"name"},"b":[1]}').problem(422, "unsupported")


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:7"])
def test_a_device_that_is_not_there_is_503(daemon, device):
    answer = daemon.dot({"a": [1], "b": [2], "device": device})
    problem = answer.problem(503, "no-device")
    name = device if ":" in device else "a CUDA device"
    assert problem["detail"].startswith(f"{name} is not there") and problem["pointer"] == "/device"
    assert "Retry-After" not in answer.headers  # it will not be there later either


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_a_device_that_is_there_computes(daemon, device):
    assert daemon.dot({"a": [1], "b": [2], "device": device}).ok()["device"] == "cpu"


def test_problems_carry_the_id(daemon):
    problem = daemon.dot({"a": [1], "b": [1, 2], "id": "r-18"}).problem(422, "length-mismatch")
    assert problem["id"] == "r-18"
