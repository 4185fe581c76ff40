/* names.h - the service's kernels under names of the emulation's own, where they are compiled for
 * it.
 *
 * Door: included by the headers that declare them. A daemon with CUDA has them twice.
 */
#ifndef GPU_KERNELS_NAMES_H
#define GPU_KERNELS_NAMES_H

#ifdef DOTD_EMU_LIBRARY
#define grid_atomic_blocks emu_grid_atomic_blocks
#define grid_atomic_launch emu_grid_atomic_launch
#define exact_open         emu_exact_open
#define exact_launch       emu_exact_launch
#define exact_float16      emu_exact_float16
#define exact_bfloat16     emu_exact_bfloat16
#define exact_float32      emu_exact_float32
#define exact_complex64    emu_exact_complex64
#define exact_float64      emu_exact_float64
#define exact_complex128   emu_exact_complex128
#define exact_int8         emu_exact_int8
#define exact_uint8        emu_exact_uint8
#define exact_int32        emu_exact_int32
#define exact_int64        emu_exact_int64
#endif

#endif
