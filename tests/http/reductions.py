"""What a block's threads must do step by step, in Python: nothing is shared with the daemon."""

import math
import struct


def narrow(value, dtype):
    """A float64 rounded to dtype. One operation on two float32 rounded twice, by way of float64, is
    rounded right: 53 bits are more than twice 24 and two."""
    if dtype == "float64" or not math.isfinite(value):
        return value
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def bits(value, dtype):
    """As the daemon prints them."""
    code, digits = ("<f", 8) if dtype == "float32" else ("<d", 16)
    return f"0x{int.from_bytes(struct.pack(code, value), 'little'):0{digits}x}"


def load(a, b, block, dtype):
    """The products, one a thread; threads beyond the end bring zero. Each writes its cell."""
    cells = [narrow(narrow(x, dtype) * narrow(y, dtype), dtype) for x, y in zip(a, b)]
    cells += [0.0] * (block - len(cells))
    return cells, [], [[thread, thread] for thread in range(block)]


def step(cells, pairs, dtype):
    """Adds cell j to cell i for all (thread, i, j). Returns the cells, the reads and the writes."""
    after = list(cells)
    for _, i, j in pairs:
        after[i] = narrow(cells[i] + cells[j], dtype)
    reads = sorted([thread, cell] for thread, i, j in pairs for cell in (i, j))
    return after, reads, sorted([thread, i] for thread, i, _ in pairs)


def stride_pairs(block):
    """By halves: of an odd number of cells the middle one waits."""
    while block > 1:
        half = (block + 1) // 2
        yield [(thread, thread, thread + half) for thread in range(block - half)]
        block = half


def neighbour_pairs(block):
    """Neighbours, then the neighbours that are left; every other thread works."""
    stride = 1
    while stride < block:
        yield [
            (thread, thread * stride, (thread + 1) * stride)
            for thread in range(0, block, 2)
            if (thread + 1) * stride < block
        ]
        stride *= 2


PAIRS = {"stride": stride_pairs, "pairs": neighbour_pairs}


def steps(a, b, block, dtype, scheme):
    """(cells, reads, writes) after each barrier, from the products to the last addition."""
    done = [load(a, b, block, dtype)]
    for pairs in PAIRS[scheme](block):
        done.append(step(done[-1][0], pairs, dtype))
    return done


def tree_sum(a, b, block, dtype, scheme="stride"):
    return steps(a, b, block, dtype, scheme)[-1][0][0]


def serial_sum(a, b, dtype):
    products = load(a, b, len(a), dtype)[0]
    total = products[0]
    for value in products[1:]:
        total = narrow(total + value, dtype)
    return total


def power_of_two(n):
    """The least one that is not below n."""
    return 1 << (n - 1).bit_length()
