/* deadlines.c - deadlines, earliest first (see deadlines.h). */
#include "server/deadlines.h"

#include <assert.h>
#include <stddef.h>

/* Makes the later root the first child of the earlier. Either may be NULL; neither has siblings. */
static struct deadline *meld(struct deadline *x, struct deadline *y)
{
    if (x == NULL || y == NULL)
        return x != NULL ? x : y;
    struct deadline *root = x->at_ns <= y->at_ns ? x : y, *child = root == x ? y : x;
    child->next = root->child;
    if (child->next != NULL)
        child->next->previous = child;
    child->previous = root;
    root->child = child;
    return root;
}

/* Takes the first root off a list of siblings. */
static struct deadline *pop(struct deadline **list)
{
    struct deadline *root = *list;
    if (root != NULL) {
        *list = root->next;
        root->next = root->previous = NULL;
    }
    return root;
}

/* One root of many: in pairs from left to right, then all from right to left. */
static struct deadline *meld_list(struct deadline *list)
{
    struct deadline *pairs = NULL, *root = NULL;
    while (list != NULL) {
        struct deadline *x = pop(&list), *pair = meld(x, pop(&list));
        pair->next = pairs;
        pairs = pair;
    }
    while (pairs != NULL)
        root = meld(root, pop(&pairs));
    return root;
}

void deadlines_set(struct deadlines *all, struct deadline *deadline, int64_t at_ns)
{
    assert(at_ns > 0);
    deadlines_clear(all, deadline);
    deadline->at_ns = at_ns;
    all->first = meld(all->first, deadline);
}

static void unlink_child(struct deadline *deadline)
{
    if (deadline->previous->child == deadline)
        deadline->previous->child = deadline->next;
    else
        deadline->previous->next = deadline->next;
    if (deadline->next != NULL)
        deadline->next->previous = deadline->previous;
}

void deadlines_clear(struct deadlines *all, struct deadline *deadline)
{
    if (deadline->at_ns == 0)
        return;
    struct deadline *below = meld_list(deadline->child);
    if (deadline == all->first) {
        all->first = below;
    } else {
        unlink_child(deadline);
        all->first = meld(all->first, below);
    }
    *deadline = (struct deadline){0};
}

struct deadline *deadlines_take(struct deadlines *all, int64_t now_ns)
{
    struct deadline *first = all->first;
    if (first == NULL || first->at_ns > now_ns)
        return NULL;
    deadlines_clear(all, first);
    return first;
}

int64_t deadlines_next_ns(const struct deadlines *all)
{
    return all->first != NULL ? all->first->at_ns : INT64_MAX;
}
