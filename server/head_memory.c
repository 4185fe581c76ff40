/* head_memory.c - heads that are known already (see head_memory.h). */
#include "server/head_memory.h"

#include <microhttpd.h>
#include <string.h>

#include "server/exchange.h"
#include "server/exchanges.h"
#include "server/loop.h"

static struct head_memory *memory_of(const struct exchange *exchange)
{
    struct exchanges *all = loop_exchanges(exchange->loop);
    return &all->memory[exchange->connection->client % HEAD_MEMORIES];
}

/* The head's values, which lie from `from` on, lie from `to` on as well. */
static void move_values(struct head *head, const char *from, const char *to)
{
    const char **values[] = {&head->accept, &head->content_encoding, &head->content_type,
                             &head->request_id, &head->timeout_ms};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (*values[i] != NULL)
            *values[i] = to + (*values[i] - from);
}

/* ---- the same one -------------------------------------------------------------------------- */

struct comparison {
    const struct head_memory *memory;
    uintptr_t start;
    unsigned same_count; /* of fields, all those that were looked at */
};

static enum MHD_Result compare_field(void *closure, enum MHD_ValueKind kind, const char *name,
                                     size_t name_size, const char *value, size_t value_size)
{
    struct comparison *comparison = closure;
    const struct head_memory *memory = comparison->memory;
    const struct head_field *was = &memory->field[comparison->same_count];
    (void)kind;
    if (comparison->same_count == memory->field_count ||
        (uintptr_t)name - comparison->start != was->name || name_size != was->name_size ||
        (uintptr_t)value - comparison->start != was->value || value_size != was->value_size)
        return MHD_NO;
    comparison->same_count++;
    return MHD_YES;
}

/* The bytes are looked at once the fields are known to lie among them. */
static bool is_same(const struct head_memory *memory, const struct exchange *exchange)
{
    const struct text *target = &exchange->request_target;
    struct comparison comparison = {.memory = memory, .start = (uintptr_t)exchange->head_start};
    if (memory->size != exchange->head_size || target->size != memory->target_size ||
        memcmp(target->data, memory->target, target->size) != 0)
        return false;
    int seen =
        MHD_get_connection_values_n(exchange->mhd, MHD_HEADER_KIND, compare_field, &comparison);
    return seen == (int)memory->field_count && comparison.same_count == memory->field_count &&
           memcmp(exchange->head_start, memory->text, memory->size) == 0;
}

bool head_memory_recall(struct exchange *exchange)
{
    const struct head_memory *memory = memory_of(exchange);
    if (!is_same(memory, exchange))
        return false;
    exchange->head = memory->head;
    move_values(&exchange->head, memory->text, exchange->head_start);
    exchange->method = memory->method;
    exchange->route = memory->route;
    exchange->known = &memory->dot;
    return true;
}

/* ---- a new one ----------------------------------------------------------------------------- */

struct lesson {
    struct head_memory *memory;
    uintptr_t start;
    size_t end;  /* of the field that was looked at last */
    bool is_odd; /* a field does not follow the one before, or there are too many */
};

static enum MHD_Result note_field(void *closure, enum MHD_ValueKind kind, const char *name,
                                  size_t name_size, const char *value, size_t value_size)
{
    struct lesson *lesson = closure;
    struct head_memory *memory = lesson->memory;
    const struct head_field field = {(uintptr_t)name - lesson->start, name_size,
                                     (uintptr_t)value - lesson->start, value_size};
    (void)kind;
    lesson->is_odd = memory->field_count == HEAD_MEMORY_FIELDS || field.name < lesson->end ||
                     field.value < field.name + name_size;
    if (lesson->is_odd)
        return MHD_NO;
    lesson->end = field.value + value_size;
    memory->field[memory->field_count++] = field;
    return MHD_YES;
}

/* Fields that are not found among the bytes, each behind the one before, are not remembered. Nor
 * need what exchange.c cut off a value be put back: such a head is read anew. */
void head_memory_learn(struct exchange *exchange, const struct dot_head *dot)
{
    struct head_memory *memory = memory_of(exchange);
    const struct text *target = &exchange->request_target;
    struct lesson lesson = {.memory = memory, .start = (uintptr_t)exchange->head_start};
    memory->size = 0;
    memory->field_count = 0;
    (void)MHD_get_connection_values_n(exchange->mhd, MHD_HEADER_KIND, note_field, &lesson);
    if (lesson.is_odd || lesson.end > exchange->head_size ||
        exchange->head_size > sizeof memory->text || target->size > sizeof memory->target)
        return;
    memory->size = exchange->head_size;
    memory->target_size = target->size;
    memcpy(memory->text, exchange->head_start, memory->size);
    memcpy(memory->target, target->data, target->size);
    memory->head = exchange->head;
    move_values(&memory->head, exchange->head_start, memory->text);
    memory->method = exchange->method;
    memory->route = exchange->route;
    memory->dot = *dot;
}
