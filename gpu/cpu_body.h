/* cpu_body.h - the dot product of cpu_dot.c for one instruction set and one element type.
 *
 * No door: included once for each, with CPU_TARGET (a word), CPU_BYTES (of a vector register) and
 * CPU_ELEMENT, CPU_DTYPE (float, float32) and CPU_WIDEN (a vector of elements as float64) set.
 * GCC's vector extensions say what is meant; the compiler picks the target's instructions.
 *
 * Idea   CPU_CHAINS vectors of partial sums, and as many of absolute values, so that the latency of
 *        an addition is hidden; a block of CPU_BLOCK terms is folded by halves into one number, so
 *        that the bound grows with the number of blocks and not with n.
 * Cost   for a vector of products: two loads (widening float32), a multiplication, two additions.
 */
#define CPU_PASTE_(a, b, c) a##_##b##_##c
#define CPU_PASTE(a, b, c)  CPU_PASTE_(a, b, c)
#define CPU_NAME(word)      CPU_PASTE(word, CPU_TARGET, CPU_DTYPE)
#define CPU_WIDTH           (CPU_BYTES / sizeof(double))

typedef double CPU_NAME(wide) __attribute__((vector_size(CPU_BYTES)));
typedef int64_t CPU_NAME(mask) __attribute__((vector_size(CPU_BYTES)));
typedef CPU_ELEMENT CPU_NAME(raw) __attribute__((vector_size(CPU_WIDTH * sizeof(CPU_ELEMENT))));

/* Adds CPU_WIDTH products to *sum and their absolute values to *sum_abs. memcpy: any alignment. */
__attribute__((always_inline)) static inline void CPU_NAME(add)(const CPU_ELEMENT *a,
                                                                const CPU_ELEMENT *b,
                                                                CPU_NAME(wide) * sum,
                                                                CPU_NAME(wide) * sum_abs)
{
    CPU_NAME(raw) x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    CPU_NAME(wide) product = CPU_WIDEN(x) * CPU_WIDEN(y);
    *sum += product;
    *sum_abs += (CPU_NAME(wide))((CPU_NAME(mask))product & INT64_MAX);
}

/* The lanes' total by halves: log2(CPU_WIDTH) additions deep. */
__attribute__((always_inline)) static inline double CPU_NAME(fold)(CPU_NAME(wide) vector)
{
    double lane[CPU_WIDTH];
    memcpy(lane, &vector, sizeof lane);
    for (size_t half = CPU_WIDTH / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

/* At most CPU_BLOCK terms. What does not fill CPU_CHAINS vectors goes one vector to a chain, and
 * what does not fill a vector is padded with zeros: no chain gets more than its share. */
static struct cpu_sum CPU_NAME(block)(const CPU_ELEMENT *a, const CPU_ELEMENT *b, size_t n)
{
    CPU_NAME(wide) s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    CPU_NAME(wide) t0 = {0}, t1 = {0}, t2 = {0}, t3 = {0};
    for (; n >= CPU_CHAINS * CPU_WIDTH; n -= CPU_CHAINS * CPU_WIDTH) {
        CPU_NAME(add)(a, b, &s0, &t0);
        CPU_NAME(add)(a + CPU_WIDTH, b + CPU_WIDTH, &s1, &t1);
        CPU_NAME(add)(a + 2 * CPU_WIDTH, b + 2 * CPU_WIDTH, &s2, &t2);
        CPU_NAME(add)(a + 3 * CPU_WIDTH, b + 3 * CPU_WIDTH, &s3, &t3);
        a += CPU_CHAINS * CPU_WIDTH;
        b += CPU_CHAINS * CPU_WIDTH;
    }
    size_t whole = n / CPU_WIDTH, rest = n % CPU_WIDTH;
    if (whole > 0)
        CPU_NAME(add)(a, b, &s0, &t0);
    if (whole > 1)
        CPU_NAME(add)(a + CPU_WIDTH, b + CPU_WIDTH, &s1, &t1);
    if (whole > 2)
        CPU_NAME(add)(a + 2 * CPU_WIDTH, b + 2 * CPU_WIDTH, &s2, &t2);
    if (rest > 0) {
        CPU_ELEMENT x[CPU_WIDTH] = {0}, y[CPU_WIDTH] = {0};
        memcpy(x, a + whole * CPU_WIDTH, rest * sizeof *x);
        memcpy(y, b + whole * CPU_WIDTH, rest * sizeof *y);
        CPU_NAME(add)(x, y, &s3, &t3);
    }
    return (struct cpu_sum){
        .sum = CPU_NAME(fold)((s0 + s1) + (s2 + s3)),
        .sum_abs = CPU_NAME(fold)((t0 + t1) + (t2 + t3)),
    };
}

static struct cpu_sum CPU_NAME(dot)(const void *a_, const void *b_, uint64_t n)
{
    const CPU_ELEMENT *a = a_, *b = b_;
    struct cpu_sum total = {0, 0};
    for (uint64_t done = 0; done < n; done += CPU_BLOCK) {
        uint64_t rest = n - done;
        struct cpu_sum part =
            CPU_NAME(block)(a + done, b + done, rest < CPU_BLOCK ? rest : CPU_BLOCK);
        total.sum += part.sum;
        total.sum_abs += part.sum_abs;
    }
    return total;
}

#undef CPU_PASTE_
#undef CPU_PASTE
#undef CPU_NAME
#undef CPU_WIDTH
