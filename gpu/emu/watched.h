/* watched.h - memory of a kernel whose reads and writes the emulation sees.
 *
 * Door: `__shared__ watched<float> sum[N];` or a parameter `watched<float> *result` in a kernel
 * that includes gpu/kernels/watched.cuh; nvcc makes of it plain float. A kernel that is to be
 * recorded names its arrays first: watch_shared(sum, blockDim.x, "sum"), where the count is what
 * this launch uses, and watch_global(result, 1, "result").
 *
 * A conversion to T is a read, an assignment a write, `+=` both; atomicAdd and atomicOr are atomic.
 * Nothing is copied by accident: `auto x = sum[i]` does not compile, `T x = sum[i]` does.
 */
#ifndef GPU_EMU_WATCHED_H
#define GPU_EMU_WATCHED_H

#include "gpu/emu/emu.h"

template <typename T> class watched
{
  public:
    constexpr watched() : value() /* else every kernel would ask whether its arrays are made yet */
    {
    }
    watched(const watched &) = delete;

    operator T() const
    {
        if (!emu_is_watching)
            return value;
        emu_before(this, sizeof value, EMU_READ);
        const T copy = value;
        emu_after(this, EMU_READ, (double)copy);
        return copy;
    }

    watched &operator=(T other)
    {
        if (emu_is_watching)
            emu_before(this, sizeof value, EMU_WRITE);
        value = other;
        if (emu_is_watching)
            emu_after(this, EMU_WRITE, (double)value);
        return *this;
    }

    watched &operator=(const watched &other)
    {
        return *this = (T)other;
    }

    watched &operator+=(T other)
    {
        return *this = (T)(*this + other);
    }

    watched &operator-=(T other)
    {
        return *this = (T)(*this - other);
    }

    watched &operator*=(T other)
    {
        return *this = (T)(*this * other);
    }

    /* A device's atomic operation: nobody comes between. Returns what was there before. */
    template <typename Change> T change(Change operation)
    {
        if (emu_is_watching)
            emu_before(this, sizeof value, EMU_ATOMIC);
        const T before = value;
        value = operation(before);
        if (emu_is_watching)
            emu_after(this, EMU_ATOMIC, (double)value);
        return before;
    }

  private:
    T value;
};

template <typename T> struct emu_same {
    typedef T type;
};

template <typename T> static inline T atomicAdd(watched<T> *at, typename emu_same<T>::type value)
{
    return at->change([value](T before) { return (T)(before + value); });
}

template <typename T> static inline T atomicOr(watched<T> *at, typename emu_same<T>::type value)
{
    return at->change([value](T before) { return (T)(before | value); });
}

template <typename T>
static inline void watch_shared(const watched<T> *array, uint32_t count, const char *name)
{
    if (emu_is_watching)
        emu_name(name, array, count, sizeof(T), true);
}

template <typename T>
static inline void watch_global(const watched<T> *array, uint32_t count, const char *name)
{
    if (emu_is_watching)
        emu_name(name, array, count, sizeof(T), false);
}

#endif
