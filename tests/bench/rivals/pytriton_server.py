"""Dot products by PyTriton: models named as dotd names them, batched by Triton.

Usage: pytriton_server.py FOLDER HTTP_PORT GRPC_PORT METRICS_PORT. Triton keeps what it needs in the
folder, which must be new; it collects what waits into one batch, up to as many as there are
connections, and the function gets it as one array.
"""

import os
import sys

import numpy as np
from pytriton.decorators import batch
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig

CONNECTIONS = 16
CORES = len(os.sched_getaffinity(0))


@batch
def dot(a, b):
    return [np.einsum("ij,ij->i", a, b)[:, np.newaxis]]


def bind(triton, name, dtype):
    triton.bind(
        model_name=name,
        infer_func=[dot] * CORES,  # an instance each
        inputs=[Tensor(name=operand, dtype=dtype, shape=(-1,)) for operand in "ab"],
        outputs=[Tensor(name="result", dtype=dtype, shape=(1,))],
        config=ModelConfig(max_batch_size=CONNECTIONS, batcher=DynamicBatcher()),
    )


def main():
    http_port, grpc_port, metrics_port = map(int, sys.argv[2:])
    config = TritonConfig(
        http_address="127.0.0.1",
        http_port=http_port,
        grpc_address="127.0.0.1",
        grpc_port=grpc_port,
        metrics_address="127.0.0.1",
        metrics_port=metrics_port,
    )
    with Triton(config=config, workspace=sys.argv[1]) as triton:
        bind(triton, "dot", np.float32)
        bind(triton, "dot_fp64", np.float64)
        triton.serve()


if __name__ == "__main__":
    main()
