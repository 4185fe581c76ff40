/* cublas.h - what the programs that set kernels beside cuBLAS time both sides on: one stream,
 * events, a cold L2, operands on the device. Included once, by a program.
 *
 * Door: stage_open(); stage_begin(), work queued on the stream, stage_end(); stage_blas() is
 * cuBLAS's side. Whatever fails ends the program.
 */
#ifndef TESTS_BENCH_CUBLAS_H
#define TESTS_BENCH_CUBLAS_H

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/tensor.h"

#define REQUIRE(call)                                                 \
    do {                                                              \
        int status_ = (int)(call);                                    \
        if (status_ != 0) {                                           \
            (void)fprintf(stderr, "%s: status %d\n", #call, status_); \
            exit(1);                                                  \
        }                                                             \
    } while (0)

struct stage {
    cudaStream_t stream;
    cudaEvent_t begin, end;
    cublasHandle_t cublas;
    float *d_flush; /* twice L2 */
    size_t flush_bytes;
    char *d_a, *d_b; /* operands */
    void *d_blas;    /* cuBLAS's result, of 8 bytes at most */
};

/* For operands of so many bytes each. */
static inline void stage_open(struct stage *stage, size_t bytes)
{
    int device = 0, l2 = 0;
    REQUIRE(cudaGetDevice(&device));
    REQUIRE(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device));
    stage->flush_bytes = 2 * (size_t)l2;
    REQUIRE(cudaStreamCreate(&stage->stream));
    REQUIRE(cudaEventCreate(&stage->begin));
    REQUIRE(cudaEventCreate(&stage->end));
    REQUIRE(cudaMalloc((void **)&stage->d_flush, stage->flush_bytes));
    REQUIRE(cudaMemset(stage->d_flush, 0, stage->flush_bytes));
    REQUIRE(cudaMalloc((void **)&stage->d_a, bytes));
    REQUIRE(cudaMalloc((void **)&stage->d_b, bytes));
    REQUIRE(cudaMalloc(&stage->d_blas, 8));
    REQUIRE(cublasCreate(&stage->cublas));
    REQUIRE(cublasSetStream(stage->cublas, stage->stream));
    REQUIRE(cublasSetPointerMode(stage->cublas, CUBLAS_POINTER_MODE_DEVICE));
}

static inline void stage_close(struct stage *stage)
{
    REQUIRE(cublasDestroy(stage->cublas));
    REQUIRE(cudaFree(stage->d_blas));
    REQUIRE(cudaFree(stage->d_b));
    REQUIRE(cudaFree(stage->d_a));
    REQUIRE(cudaFree(stage->d_flush));
    REQUIRE(cudaEventDestroy(stage->end));
    REQUIRE(cudaEventDestroy(stage->begin));
    REQUIRE(cudaStreamDestroy(stage->stream));
}

/* What is queued between these two is timed, behind a flush of L2: it is queued by then. The flush
 * only reads: behind one that writes, every side would first write back what that left in L2, some
 * 10 us on an H200. */
static inline void stage_begin(const struct stage *stage)
{
    const int half = (int)(stage->flush_bytes / sizeof(float) / 2);
    REQUIRE(cublasSdot(stage->cublas, half, stage->d_flush, 1, stage->d_flush + half, 1,
                       (float *)stage->d_blas));
    REQUIRE(cudaEventRecord(stage->begin, stage->stream));
}

static inline double stage_end_us(const struct stage *stage)
{
    float ms = 0;
    REQUIRE(cudaEventRecord(stage->end, stage->stream));
    REQUIRE(cudaStreamSynchronize(stage->stream));
    REQUIRE(cudaEventElapsedTime(&ms, stage->begin, stage->end));
    return (double)ms * 1e3;
}

/* Queues cuBLAS's dot product of n elements, of a real float type. */
static inline void stage_blas(const struct stage *stage, enum dtype dtype, uint64_t n)
{
    const cudaDataType_t type = dtype == DTYPE_FLOAT16 ? CUDA_R_16F : CUDA_R_16BF;
    if (dtype == DTYPE_FLOAT32)
        REQUIRE(cublasSdot(stage->cublas, (int)n, (const float *)(void *)stage->d_a, 1,
                           (const float *)(void *)stage->d_b, 1, stage->d_blas));
    else if (dtype == DTYPE_FLOAT64)
        REQUIRE(cublasDdot(stage->cublas, (int)n, (const double *)(void *)stage->d_a, 1,
                           (const double *)(void *)stage->d_b, 1, stage->d_blas));
    else
        REQUIRE(cublasDotEx(stage->cublas, (int)n, stage->d_a, type, 1, stage->d_b, type, 1,
                            stage->d_blas, type, CUDA_R_32F));
}

static inline int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts them. */
static inline double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return values[count / 2];
}

#endif
