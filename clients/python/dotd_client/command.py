"""dotd-dot: the dot product of two files.

usage: dotd-dot A B, where each is a .npy file or, with --dtype, raw little-endian elements. Prints
the value, then its bits. Exit status: 0; 1 when the service refused or did not answer; 2 for a
wrong command line or file.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from .calls import TIMEOUT_S
from .client import Client
from .elements import TYPES, type_named
from .errors import DotdError
from .npy import open_operand
from .result import Result

URL = "http://127.0.0.1:8080"


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="dotd-dot", description="The dot product of two files, computed by dotd."
    )
    made.add_argument("a", metavar="A", help=".npy file, or raw elements with --dtype")
    made.add_argument("b", metavar="B", help="likewise")
    made.add_argument("--url", default=os.environ.get("DOTD_URL", URL), help="$DOTD_URL, or " + URL)
    made.add_argument("--token", default=os.environ.get("DOTD_TOKEN"), help="$DOTD_TOKEN")
    made.add_argument("--dtype", help="of raw elements: " + ", ".join(TYPES))
    made.add_argument("--result-dtype")
    made.add_argument("--accuracy", choices=["exact", "fast"])
    made.add_argument("--kernel")
    made.add_argument("--device")
    made.add_argument("--conjugate", action="store_true", help="the elements of a complex A")
    made.add_argument("--timeout", type=float, default=TIMEOUT_S, help="seconds, by default 60")
    return made


def bits_text(bits: Any, digits: int) -> str:
    """Nested as the numbers are; an integer beyond 64 bits has the 48 digits of its answer."""
    if isinstance(bits, (list, tuple)):
        return f"[{', '.join(bits_text(item, digits) for item in bits)}]"
    return f"0x{bits:0{digits if bits < 16**digits else 48}x}"


def ask(arguments: argparse.Namespace) -> Result:
    element = None if arguments.dtype is None else type_named(arguments.dtype)
    a, b = (open_operand(path, element) for path in (arguments.a, arguments.b))
    with Client(arguments.url, arguments.token, arguments.timeout) as client:
        return client.dot(
            a,
            b,
            dtype=arguments.dtype,
            result_dtype=arguments.result_dtype,
            accuracy=arguments.accuracy,
            kernel=arguments.kernel,
            device=arguments.device,
            conjugate=arguments.conjugate,
        )


def main(words: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(words)
    try:
        result = ask(arguments)
    except DotdError as error:
        print(f"dotd-dot: {error}", file=sys.stderr)
        return 1
    except (OSError, TypeError, ValueError) as error:
        print(f"dotd-dot: {error}", file=sys.stderr)
        return 2
    print(result.value)
    print(bits_text(result.bits, 2 * TYPES[result.result_dtype].part_size))
    return 0


if __name__ == "__main__":
    sys.exit(main())
