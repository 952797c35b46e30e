/* Renames generated numbers. A number gets a colour from the places where it occurs: the path, the other text of the row, and the colours of the
 * other numbers of the row; this is repeated until the colours say no more. Numbers with one colour are then told apart one after
 * the other. Whatever the colours are, equal copies prove a renaming, since each number gets one name and each name one number. */
#include "loadtest/sqlspec/numbers/numbers.h"

#include "base/hash.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 10, PATH_MAX_SIZE = 400, NUMBERS_MAX = 4096, ROUNDS_MAX = 200 };

struct number {
    int64_t value;
    uint64_t colour, sum; /* SUM: of the places of this round */
    size_t name;          /* in its sequence */
};

struct renaming {
    const struct numbers *numbers;
    struct number *item; /* by value */
    size_t count, room;
    bool failed, too_many;
};

static int64_t sequence_of(int64_t value)
{
    return (value - NUMBERS_FIRST) / NUMBERS_EACH;
}

/* The next generated number in TEXT: ten digits with no digit next to them. NULL: there is none. */
static const char *find_number(const struct numbers *numbers, const char *text, int64_t *ret_value)
{
    int64_t last = NUMBERS_FIRST + (int64_t)numbers->count * NUMBERS_EACH;
    for (text += strcspn(text, "0123456789"); *text; text += strcspn(text, "0123456789")) {
        size_t length = strspn(text, "0123456789");
        if (length == DIGITS) {
            *ret_value = strtoll(text, NULL, 10);
            if (*ret_value >= NUMBERS_FIRST && *ret_value < last)
                return text;
        }
        text += length;
    }
    return NULL;
}

static int compare_values(const void *one, const void *other)
{
    int64_t left = ((const struct number *)one)->value, right = ((const struct number *)other)->value;
    return (left > right) - (left < right);
}

static struct number *find(const struct renaming *renaming, int64_t value)
{
    const struct number key = {.value = value};
    return bsearch(&key, renaming->item, renaming->count, sizeof key, compare_values);
}

/* ---- which numbers there are --------------------------------------------------------------------------- */

static void add(struct renaming *renaming, int64_t value)
{
    for (size_t i = renaming->count; i > 0; i--)
        if (renaming->item[i - 1].value == value)
            return;
    if (renaming->count == renaming->room) {
        size_t room = renaming->room ? renaming->room * 2 : 16;
        renaming->too_many |= room > NUMBERS_MAX;
        struct number *grown = renaming->too_many ? NULL : realloc(renaming->item, room * sizeof *grown);
        renaming->failed |= !grown && !renaming->too_many;
        if (!grown)
            return;
        renaming->item = grown;
        renaming->room = room;
    }
    int64_t sequence = sequence_of(value);
    renaming->item[renaming->count++] = (struct number){
        .value = value, .colour = hash_add_number(HASH_OF_NOTHING, (uint64_t)sequence)};
}

static void collect(struct renaming *renaming, const json_t *value)
{
    const char *key, *text = json_string_value(value);
    json_t *member;
    size_t i;
    int64_t number;
    for (; text && (text = find_number(renaming->numbers, text, &number)); text += DIGITS)
        add(renaming, number);
    if (json_is_object(value)) {
        json_object_foreach((json_t *)value, key, member)
            collect(renaming, member);
    } else {
        json_array_foreach(value, i, member) {
            collect(renaming, member);
        }
    }
}

/* ---- colours ------------------------------------------------------------------------------------------- */

/* The row as a hash, in which colours stand for numbers. ADD_TO: the hash of the row; adds to each number its place in it. */
static uint64_t hash_row(struct renaming *renaming, const json_t *row, uint64_t hash, const uint64_t *add_to)
{
    size_t count = json_is_array(row) ? json_array_size(row) : 1, place = 0;
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_is_array(row) ? json_array_get(row, i) : row), *next;
        int64_t value;
        hash = hash_add(hash, text ? "t" : "n", 1);
        for (; text && (next = find_number(renaming->numbers, text, &value)); text = next + DIGITS) {
            struct number *number = find(renaming, value);
            hash = hash_add(hash, text, (size_t)(next - text));
            hash = hash_add_number(hash, number->colour);
            if (add_to)
                number->sum += hash_add_number(*add_to, place);
            place++;
        }
        if (text)
            hash = hash_add(hash, text, strlen(text) + 1);
    }
    return hash;
}

static void visit_row(struct renaming *renaming, const json_t *row, uint64_t path)
{
    uint64_t hash = hash_row(renaming, row, path, NULL);
    (void)hash_row(renaming, row, path, &hash);
}

static bool is_row(const json_t *value)
{
    size_t i;
    json_t *member;
    json_array_foreach(value, i, member) {
        if (json_is_array(member) || json_is_object(member))
            return false;
    }
    return true;
}

static void visit(struct renaming *renaming, const json_t *value, uint64_t path, bool is_ordered)
{
    const char *key;
    json_t *member;
    size_t i;
    if (json_is_object(value)) {
        bool unordered = json_is_true(json_object_get(value, "unordered"));
        json_object_foreach((json_t *)value, key, member)
            visit(renaming, member, hash_add(path, key, strlen(key) + 1),
                  strcmp(key, "tables") != 0 && !(unordered && strcmp(key, "rows") == 0));
    } else if (json_is_array(value) && !is_row(value)) {
        json_array_foreach(value, i, member) {
            visit(renaming, member, is_ordered ? hash_add_number(path, i) : path, true);
        }
    } else {
        visit_row(renaming, value, path);
    }
}

static int compare_colours(const void *one, const void *other)
{
    const struct number *left = *(struct number *const *)one, *right = *(struct number *const *)other;
    int64_t left_sequence = sequence_of(left->value), right_sequence = sequence_of(right->value);
    if (left_sequence != right_sequence)
        return left_sequence < right_sequence ? -1 : 1;
    if (left->colour != right->colour)
        return left->colour < right->colour ? -1 : 1;
    return compare_values(left, right);
}

static size_t count_colours(struct number *const *sorted, size_t count)
{
    size_t colours = count > 0;
    for (size_t i = 1; i < count; i++)
        colours += sorted[i]->colour != sorted[i - 1]->colour;
    return colours;
}

static void name_by_size(struct renaming *renaming)
{
    for (size_t i = 0; i < renaming->count; i++) {
        struct number *number = &renaming->item[i];
        bool is_first = i == 0 || sequence_of(number[-1].value) != sequence_of(number->value);
        number->name = is_first ? 1 : number[-1].name + 1;
    }
}

static void give_names(struct renaming *renaming, const json_t *value)
{
    struct number **sorted = calloc(renaming->count + 1, sizeof(struct number *));
    size_t count = renaming->count, colours = 0, name = 0;
    renaming->failed |= !sorted;
    for (size_t i = 0; sorted && i < count; i++)
        sorted[i] = &renaming->item[i];
    for (int round = 0; sorted && count > 0 && round < ROUNDS_MAX; round++) {
        for (size_t i = 0; i < count; i++)
            renaming->item[i].sum = 0;
        visit(renaming, value, HASH_OF_NOTHING, true);
        for (size_t i = 0; i < count; i++)
            renaming->item[i].colour = hash_add_number(renaming->item[i].colour, renaming->item[i].sum);
        qsort(sorted, count, sizeof(struct number *), compare_colours);
        size_t now = count_colours(sorted, count);
        if (now == count)
            break;
        if (now == colours) { /* no more to learn: tells the first two that look alike apart */
            size_t i = 1;
            while (sorted[i]->colour != sorted[i - 1]->colour)
                i++;
            sorted[i - 1]->colour = hash_add(sorted[i - 1]->colour, "first", 5);
        }
        colours = now;
    }
    for (size_t i = 0; sorted && i < count; i++) {
        name = i > 0 && sequence_of(sorted[i]->value) == sequence_of(sorted[i - 1]->value) ? name + 1 : 1;
        sorted[i]->name = name;
    }
    free(sorted);
}

/* ---- copies -------------------------------------------------------------------------------------------- */

static int compare_texts(const void *one, const void *other)
{
    char *const *left = one, *const *right = other;
    return strcmp(*left, *right);
}

void numbers_sort(json_t *rows)
{
    size_t count = json_array_size(rows), known = 0;
    char **texts = calloc(count + 1, sizeof *texts);
    while (texts && known < count && (texts[known] = json_dumps(json_array_get(rows, known), JSON_COMPACT)))
        known++;
    if (texts && known == count) {
        qsort(texts, count, sizeof *texts, compare_texts);
        for (size_t i = 0; i < count; i++)
            (void)json_array_set_new(rows, i, json_loads(texts[i], 0, NULL));
    }
    for (size_t i = 0; i < known; i++)
        free(texts[i]);
    free(texts);
}

/* RENAMING NULL: the numbers that there would have been without us. */
static json_t *copy_text(const struct numbers *numbers, const struct renaming *renaming, const char *text)
{
    char *copy = NULL;
    size_t size = 0;
    int64_t value;
    FILE *out = open_memstream(&copy, &size);
    for (const char *next; out && (next = find_number(numbers, text, &value)); text = next + DIGITS) {
        int64_t sequence = sequence_of(value);
        (void)fwrite(text, 1, (size_t)(next - text), out);
        if (renaming)
            (void)fprintf(out, "\001%lld.%zu", (long long)sequence, find(renaming, value)->name);
        else
            (void)fprintf(
                out, "%lld",
                (long long)(numbers->next[sequence] + value - NUMBERS_FIRST - sequence * NUMBERS_EACH));
    }
    if (!out)
        return NULL;
    (void)fputs(text, out);
    json_t *string = fclose(out) == 0 ? json_string(copy) : NULL;
    free(copy);
    return string;
}

static json_t *copy_value(const struct numbers *numbers, const struct renaming *renaming, const json_t *value)
{
    const char *key;
    json_t *member, *copy;
    size_t i;
    bool ok = true;
    if (json_is_string(value))
        return copy_text(numbers, renaming, json_string_value(value));
    if (!json_is_object(value) && !json_is_array(value))
        return json_deep_copy(value);
    copy = json_is_object(value) ? json_object() : json_array();
    if (json_is_object(value)) {
        bool unordered = json_is_true(json_object_get(value, "unordered"));
        json_object_foreach((json_t *)value, key, member) {
            json_t *of = strcmp(key, "unordered") == 0 ? NULL : copy_value(numbers, renaming, member);
            if (of && (strcmp(key, "tables") == 0 || (unordered && strcmp(key, "rows") == 0)))
                numbers_sort(of);
            ok = ok && (strcmp(key, "unordered") == 0 || json_object_set_new(copy, key, of) == 0);
        }
    } else {
        json_array_foreach(value, i, member) {
            ok = ok && json_array_append_new(copy, copy_value(numbers, renaming, member)) == 0;
        }
    }
    if (ok)
        return copy;
    json_decref(copy);
    return NULL;
}

json_t *numbers_canonical(const struct numbers *numbers, const json_t *value)
{
    struct renaming renaming = {.numbers = numbers};
    static const struct numbers NONE = {.count = 0};
    json_t *copy = NULL;
    if (numbers->count > 0)
        collect(&renaming, value);
    if (renaming.too_many) { /* then the numbers are compared as they are */
        renaming.numbers = &NONE;
    } else if (renaming.count > 0 && !renaming.failed) {
        qsort(renaming.item, renaming.count, sizeof *renaming.item, compare_values);
        if (numbers->by_size)
            name_by_size(&renaming);
        else
            give_names(&renaming, value);
    }
    if (!renaming.failed)
        copy = copy_value(renaming.numbers, &renaming, value);
    free(renaming.item);
    return copy;
}

json_t *numbers_small(const struct numbers *numbers, const json_t *value)
{
    return copy_value(numbers, NULL, value);
}
