/* watched.cuh - memory of a kernel that the emulation can watch; on a device plain T.
 *
 * Door: watched<T>, watch_shared(), watch_global(); gpu/emu/watched.h says what they mean. Under
 * nvcc the calls are empty and the code is that for T.
 */
#ifndef GPU_KERNELS_WATCHED_CUH
#define GPU_KERNELS_WATCHED_CUH

#include <cuda_runtime_api.h> /* the emulation's own brings the class */

#ifndef DOTD_EMU
template <typename T> using watched = T;

template <typename T> __device__ inline void watch_shared(const T *, unsigned, const char *)
{
}

template <typename T> __device__ inline void watch_global(const T *, unsigned, const char *)
{
}
#endif

#endif
