/* buffer.c - the growing operand buffer, and the heap as a source of blocks (see buffer.h). */
#include "proto/buffer.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"

static bool buffer_is_sane(const struct buffer *buffer)
{
    return buffer->used <= buffer->block.size && (buffer->block.data != NULL || buffer->used == 0);
}

size_t size_align(size_t size)
{
    const size_t mask = LIMIT_OPERAND_ALIGN - 1;
    static_assert((LIMIT_OPERAND_ALIGN & (LIMIT_OPERAND_ALIGN - 1)) == 0, "a power of two");
    return size > SIZE_MAX - mask ? SIZE_MAX : (size + mask) & ~mask;
}

static enum error heap_acquire(void *context, size_t size, struct block *ret)
{
    (void)context;
    size_t aligned = size_align(size == 0 ? 1 : size);
    void *data = aligned > PTRDIFF_MAX ? NULL : aligned_alloc(LIMIT_OPERAND_ALIGN, aligned);
    if (data == NULL)
        return ERR_NOMEM;
    *ret = (struct block){data, aligned};
    return ERR_OK;
}

static void heap_release(void *context, struct block block)
{
    (void)context;
    free(block.data);
}

const struct buffer_source buffer_heap = {heap_acquire, heap_release, NULL, NULL};

void buffer_init(struct buffer *buffer, const struct buffer_source *source)
{
    *buffer = (struct buffer){.source = source};
}

void buffer_fini(struct buffer *buffer)
{
    if (buffer->block.data != NULL)
        buffer->source->release(buffer->source->context, buffer->block);
    buffer->block = (struct block){NULL, 0};
    buffer->used = 0;
}

/* Without a copy, and without the memory for two. */
static enum error extend(struct buffer *buffer, size_t size)
{
    const struct buffer_source *source = buffer->source;
    if (buffer->block.data == NULL || source->extend == NULL)
        return ERR_NOMEM;
    return source->extend(source->context, size, &buffer->block);
}

enum error buffer_reserve(struct buffer *buffer, size_t size)
{
    assert(buffer_is_sane(buffer));
    if (size <= buffer->block.size)
        return ERR_OK;
    size_t half_more =
        buffer->block.size + buffer->block.size / 2; /* below SIZE_MAX: it is memory */
    if (extend(buffer, size > half_more ? size : half_more) == ERR_OK ||
        extend(buffer, size) == ERR_OK)
        return ERR_OK;
    struct block block;
    const struct buffer_source *source = buffer->source;
    enum error err = source->acquire(source->context, size > half_more ? size : half_more, &block);
    if (err != ERR_OK &&
        size < half_more) /* memory is short: a step that still costs O(n) in all */
        err = source->acquire(source->context, size + size / 16, &block);
    if (err != ERR_OK)
        return err;
    assert(block.size >= size && (uintptr_t)block.data % LIMIT_OPERAND_ALIGN == 0);
    if (buffer->block.data != NULL) {
        memcpy(block.data, buffer->block.data, buffer->used);
        source->release(source->context, buffer->block);
    }
    buffer->block = block;
    return ERR_OK;
}

enum error buffer_align(struct buffer *buffer, size_t *ret_offset)
{
    size_t offset = size_align(buffer->used);
    enum error err = offset == SIZE_MAX ? ERR_NOMEM : buffer_reserve(buffer, offset);
    if (err != ERR_OK)
        return err;
    buffer->used = offset;
    *ret_offset = offset;
    return ERR_OK;
}

enum error operands_too_large(size_t max_bytes, struct problem *problem)
{
    problem_set(problem, ERR_TOO_LARGE, "the operands need more than %zu bytes", max_bytes);
    return problem_limit(problem, max_bytes, "memory_budget_bytes");
}
