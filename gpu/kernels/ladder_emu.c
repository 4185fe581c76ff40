/* ladder_emu.c - from a row of the ladder to its kernel in the emulation (see rung.h). */
#include "gpu/kernels/ladder_map.h"
#include "gpu/kernels/rung.h"

#define X(symbol, text, ...) int emu_##symbol(const struct rung_launch *launch);
LADDER_MAP(X)
#undef X

static int (*const launchers[])(const struct rung_launch *launch) = {
#define X(symbol, text, ...) emu_##symbol,
    LADDER_MAP(X)
#undef X
};

bool rung_emulated(const struct rung *rung, const struct rung_call *call)
{
    struct rung_launch launch;
    const size_t row = rung_prepare(rung, call, &launch);
    return launchers[row](&launch) == 0;
}
