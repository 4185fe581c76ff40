"""Client of dotd, the service of correctly rounded dot products.

    from dotd_client import Client

    with Client("http://127.0.0.1:8080") as client:
        client.dot([1, 2, 3], [4.0, 5.0, 6.0]).value  # 32.0

Door: Client, AsyncClient with the same calls, Result, and the exceptions. Needs nothing beyond the
standard library; NumPy arrays are taken, and given back, by programs that have imported NumPy.
"""

from .aio import AsyncClient
from .client import Client
from .errors import BadAnswer, DeadlineExceeded, DotdError, LateProblem, Problem, Unreachable
from .result import Result

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "BadAnswer",
    "Client",
    "DeadlineExceeded",
    "DotdError",
    "LateProblem",
    "Problem",
    "Result",
    "Unreachable",
]
