"""Dot products by FastAPI: the body read with orjson or np.frombuffer, summed by NumPy.

Served by uvicorn with uvloop, httptools and a worker a core, as their documentation has it for
production. The handlers are coroutines and answer with a Response of their own, which spares the
thread pool and FastAPI's own encoding: the quickest of what is documented.
"""

import numpy as np
import orjson
from fastapi import FastAPI, Request, Response

app = FastAPI()


def answer(sum_of_products):
    return Response(orjson.dumps({"result": float(sum_of_products)}), media_type="application/json")


@app.post("/json")
async def dot_json(request: Request):
    body = orjson.loads(await request.body())
    a = np.array(body["a"], dtype=np.float64)
    b = np.array(body["b"], dtype=np.float64)
    return answer(np.dot(a, b))


@app.post("/binary")
async def dot_binary(request: Request):
    a, b = np.frombuffer(await request.body(), dtype=np.float32).reshape(2, -1)
    return answer(np.dot(a, b))
