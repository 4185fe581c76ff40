"""PyTriton's own client, asking for the same dot product from several processes at once.

Usage: client.py PORT N PROCESSES SECONDS, with the Python that nvidia-pytriton is installed for.
Prints how many answers all of them got, and in how many seconds. The operands are NumPy arrays of
float32, sent as binary tensors, and every answer is checked.
"""

import logging
import multiprocessing
import sys
import time

import numpy as np
from pytriton.client import ModelClient

logging.disable(logging.WARNING)


def operands(n):
    return [np.arange(n, dtype=np.float32) % period / 16 for period in (61, 53)]


def ask(port, n, seconds, barrier, counts):
    a, b = operands(n)
    right = np.dot(a.astype(np.float64), b)
    count = 0
    with ModelClient(f"http://127.0.0.1:{port}", "dot") as client:
        client.infer_sample(a, b)  # reads the model's configuration first
        barrier.wait()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            result = float(client.infer_sample(a, b)["result"][0])
            if abs(result - right) > n * 2.0**-24 * right:
                raise ValueError(f"the answer was {result}, and {right} is right")
            count += 1
    counts.put(count)


def main():
    port, n, processes, seconds = map(int, sys.argv[1:])
    barrier = multiprocessing.Barrier(processes)
    counts = multiprocessing.Queue()
    workers = [
        multiprocessing.Process(target=ask, args=(port, n, seconds, barrier, counts))
        for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        sys.exit(1)
    print(sum(counts.get() for _ in workers), seconds)


if __name__ == "__main__":
    main()
