"""Requests whose answers are known beforehand: in every encoding, right and wrong ones."""

import json
import random
from fractions import Fraction

from client import get, post
from rationals import FLOATS, INTEGERS, encode, rounded, value_of

RAW = "Content-Type: application/octet-stream"
JSON = "Content-Type: application/json"
OCTETS = "Accept: application/octet-stream"
LONG = 20_000  # products: of such a body some is summed as it comes
UNIT = 2 * 1074  # bits


class Sample:
    """Bytes to send, and what must come back: bits, raw bytes, or the name of a problem."""

    def __init__(self, request, bits=None, octets=None, problem=None, may_be_late=False):
        self.request, self.bits, self.octets, self.problem = request, bits, octets, problem
        self.may_be_late = may_be_late
        self.wants_device = b"device=cuda" in request

    def mistake(self, status, body):
        """What is wrong with an answer; None when nothing is. A refusal for want of room is right."""
        if status == 503 or (status == 504 and self.may_be_late):
            return None if b'"type": "/problems/' in body else body
        if self.problem is not None:
            name = json.loads(body)["type"].removeprefix("/problems/")
            return None if (status, name) == self.problem else f"{status} {body!r}, not {self.problem}"
        if status != 200:
            return f"{status} {body!r}"
        if self.octets is not None:
            return None if body == self.octets else f"{body.hex()}, not {self.octets.hex()}"
        got = json.loads(body)["bits"]
        return None if got == self.bits else f"{got}, not {self.bits}"


def element(rng, dtype):
    """A number that dtype holds, as Python has it."""
    if dtype in INTEGERS:
        size = 8 * INTEGERS[dtype][1]
        low = 0 if dtype == "uint8" else -(1 << size - 1)
        return rng.randrange(low, low + (1 << size))
    wide = rng.uniform(-1, 1) * 2.0 ** rng.randint(-8, 8)
    bits, _ = rounded(Fraction(wide), dtype)
    return float(value_of(bits, dtype))


def vectors(rng, dtype, n):
    return [[element(rng, dtype) for _ in range(n)] for _ in range(2)]


def spell(value, bits):
    return f"0x{value % (1 << bits):0{bits // 4}x}"


def exact_dot(a, b):
    """Whole numbers of a unit that is small enough for every product here: Fractions are slow."""
    total = 0
    for x, y in zip(a, b):
        (x, x_unit), (y, y_unit) = x.as_integer_ratio(), y.as_integer_ratio()
        total += (x * y << UNIT) // (x_unit * y_unit)
    return Fraction(total, 1 << UNIT)


def bits_of(a, b, dtype, result_dtype):
    """As the answer spells them."""
    exact = exact_dot(a, b)
    if result_dtype == "int64":
        whole = int(exact)
        return spell(whole, 64 if -(1 << 63) <= whole < 1 << 63 else 192)
    return spell(rounded(exact, result_dtype)[0], FLOATS[result_dtype][3])


def default_result(dtype):
    return "int64" if dtype in INTEGERS else "float64"


def chunked(target, body, piece, *headers):
    head = [f"POST {target} HTTP/1.1", "Host: x", "Transfer-Encoding: chunked", *headers]
    chunks = [body[i : i + piece] for i in range(0, len(body), piece)]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + b"".join(
        b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in [*chunks, b""]
    )


def of_json(rng, dtype, device):
    a, b = vectors(rng, dtype, rng.randint(0, 60))
    result = rng.choice(["float32", "float64", "bfloat16", default_result(dtype)])
    request = {"a": a, "b": b, "dtype": dtype, "result_dtype": result}
    body = json.dumps(dict(rng.sample(list(request.items()), len(request)))).encode()
    target = f"/v1/dot?device={device}"
    if rng.random() < 0.5:
        message = post(target, body, JSON)
    else:
        message = chunked(target, body, rng.randint(1, 99), JSON)
    return Sample(message, bits=bits_of(a, b, dtype, result))


def of_raw(rng, dtype, device):
    n = LONG if rng.random() < 0.01 else rng.randint(1, 300)
    a, b = vectors(rng, dtype, n)
    target = f"/v1/dot?dtype={dtype}&device={device}"
    body, block = encode(a, dtype) + encode(b, dtype), rng.randint(1, 99)
    if rng.random() < 0.4:
        target += f"&layout=interleaved;block={block}"
        body = b"".join(
            encode(operand[i : i + block], dtype) for i in range(0, n, block) for operand in (a, b)
        )
    bits = bits_of(a, b, dtype, default_result(dtype))
    if len(bits) == 18 and rng.random() < 0.5:
        octets = int(bits, 16).to_bytes(8, "little")
        return Sample(post(target, body, RAW, OCTETS), octets=octets)
    if rng.random() < 0.3:
        return Sample(chunked(target, body, rng.randint(1, 5000), RAW), bits=bits)
    return Sample(post(target, body, RAW), bits=bits)


def of_pairs(rng, dtype, device):
    pairs = [vectors(rng, dtype, rng.randint(0, 9)) for _ in range(rng.randint(1, 20))]
    body = json.dumps({"dtype": dtype, "pairs": [{"a": a, "b": b} for a, b in pairs]})
    bits = [bits_of(a, b, dtype, default_result(dtype)) for a, b in pairs]
    return Sample(post(f"/v1/dot?device={device}", body, JSON), bits=bits)


def of_query(rng, dtype, device):
    a, b = vectors(rng, dtype, rng.randint(1, 20))
    a_text, b_text = (",".join(map(repr, operand)) for operand in (a, b))
    target = f"/v1/dot?a={a_text}&b={b_text}&dtype={dtype}&device={device}"
    return Sample(get(target), bits=bits_of(a, b, dtype, default_result(dtype)))


def of_impatience(rng, dtype, device):
    sample = of_query(rng, dtype, device)
    sample.request = sample.request.replace(b"&dtype=", b"&timeout_ms=1&dtype=")
    sample.may_be_late = True
    return sample


def wrong_ones():
    def dot(body, *headers):
        return post("/v1/dot", body, *headers)

    return [
        Sample(dot('{"a":[1,2],"b":[1]}', JSON), problem=(422, "length-mismatch")),
        Sample(dot('{"a":[1,2,],"b":[1,2]}', JSON), problem=(400, "bad-syntax")),
        Sample(dot('{"a":[1],"b":[1]', JSON), problem=(400, "bad-syntax")),
        Sample(dot('{"a":[1],"b":[1e999]}', JSON), problem=(422, "bad-value")),
        Sample(dot('{"a":[1],"b":[1],"c":1}', JSON), problem=(400, "bad-option")),
        Sample(dot('{"a":[1],"b":[1],"dtype":"f5"}', JSON), problem=(422, "unknown-dtype")),
        Sample(dot('{"a":[1],"b":[1]}', JSON, "Accept: text/x"), problem=(406, "not-acceptable")),
        Sample(dot("a", "Content-Type: text/x"), problem=(415, "unsupported-media-type")),
        Sample(post("/v1/dot?dtype=f4", b"abc", RAW), problem=(400, "bad-length")),
        Sample(post("/v1/dot?dtype=f4", bytes(12), RAW), problem=(400, "bad-length")),
        Sample(get("/v1/dot?a=1&b=x"), problem=(422, "bad-value")),
        Sample(get("/nothing"), problem=(404, "not-found")),
        Sample(post("/livez", ""), problem=(405, "method-not-allowed")),
    ]


def make(count, seed):
    """So many samples, about a tenth of them wrong."""
    rng = random.Random(seed)
    kinds = [of_json] * 6 + [of_raw] * 6 + [of_pairs] * 2 + [of_query] * 3 + [of_impatience]
    dtypes = [*FLOATS, *INTEGERS]
    right = [
        rng.choice(kinds)(rng, rng.choice(dtypes), rng.choice(["auto", "cpu", "cuda"]))
        for _ in range(count)
    ]
    wrong = wrong_ones()
    return right + [rng.choice(wrong) for _ in range(count // 9)]
