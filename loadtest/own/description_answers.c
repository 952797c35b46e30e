/* Reads which answers of a user's service mean that units were sold, refused or promised for later. */
#include "loadtest/own/description_reader.h"

#include <inttypes.h>
#include <string.h>

static const char *const MEANINGS[SHOP_MEANINGS + 1] = {
    [SHOP_REFUSED] = "refused", [SHOP_ACCEPTED] = "accepted", [SHOP_SOLD] = "sold"};

static bool is_status(const json_t *value, int64_t least)
{
    return json_is_integer(value) && json_integer_value(value) >= least && json_integer_value(value) <= 599;
}

/* A text of the rule RULE, which MEMBER is the path of; absent: *ret_text stays. */
static bool read_condition(const struct reader *reader, const char *member, const json_t *rule,
                           const char *name, bool is_pointer, const char **ret_text)
{
    const json_t *value = json_object_get(rule, name);
    const char *text = json_string_value(value);
    char path[MEMBER_MAX];
    if (!value)
        return true;
    path_of_member(member, name, path);
    if (!text || !*text)
        return wrong(reader, path, "is %s. Write a string that is not empty", kind_of(value));
    if (is_pointer && *text != '/')
        return wrong(
            reader, path,
            "is '%.60s', which is no JSON Pointer. Write the path to a value, such as /data/order/id", text);
    *ret_text = text;
    return true;
}

static bool read_rule(const struct reader *reader, const char *path, const json_t *item,
                      struct shop_rule *ret_rule)
{
    static const char *const NAMES[] = {"status", "has", "lacks", "location", "text", NULL};
    const json_t *status = json_is_object(item) ? json_object_get(item, "status") : item;
    if (json_is_object(item) && !only_members(reader, path, item, NAMES))
        return false;
    if (!is_status(status, 200))
        return wrong(
            reader, path,
            "has no status from 200 to 599. Write one, or an object such as {\"status\": 200, \"has\": \"/errors\"}");
    *ret_rule = (struct shop_rule){.status = json_integer_value(status)};
    if (!json_is_object(item))
        return true;
    if (!read_condition(reader, path, item, "has", true, &ret_rule->has) ||
        !read_condition(reader, path, item, "lacks", true, &ret_rule->lacks) ||
        !read_condition(reader, path, item, "location", false, &ret_rule->location) ||
        !read_condition(reader, path, item, "text", false, &ret_rule->text))
        return false;
    return shop_rule_looks_inside(ret_rule) ||
           wrong(reader, path, "has a status alone. Write the number, or add has, lacks, location or text");
}

/* Two kinds of answers cannot have the same status, unless their content tells them apart. */
static bool is_new(const struct reader *reader, const char *path, const struct shop_description *description,
                   enum shop_meaning meaning, int64_t status)
{
    for (int other = 0; other < SHOP_MEANINGS; other++)
        for (size_t i = 0; other != (int)meaning && i < description->answers[other].count; i++) {
            const struct shop_rule *rule = &description->answers[other].rule[i];
            if (rule->status == status && !shop_rule_looks_inside(rule))
                return wrong(reader, path, "is %" PRId64 ", which is in \"%s\" as well. Remove one of them",
                             status, MEANINGS[other]);
        }
    return true;
}

static bool read_rules(const struct reader *reader, const json_t *answers, enum shop_meaning meaning,
                       struct shop_description *description)
{
    const json_t *list = json_object_get(answers, MEANINGS[meaning]);
    struct shop_rules *rules = &description->answers[meaning];
    char member[MEMBER_MAX], path[MEMBER_MAX];
    if (!list)
        return true;
    path_of_member("answers", MEANINGS[meaning], member);
    if (!json_is_array(list) || json_array_size(list) > SHOP_RULES_MAX)
        return wrong(reader, member, "is not an array of at most %d items. Write one such as [201]",
                     SHOP_RULES_MAX);
    if (json_array_size(list) == 0 && meaning == SHOP_SOLD)
        return wrong(reader, member, "is empty, so no answer means sold. Add a status, or remove the member");
    rules->count = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct shop_rule rule = {0};
        path_of_item(member, i, path);
        if (!read_rule(reader, path, json_array_get(list, i), &rule) ||
            (!shop_rule_looks_inside(&rule) && !is_new(reader, path, description, meaning, rule.status)))
            return false;
        rules->rule[rules->count++] = rule;
    }
    return true;
}

static bool read_sold_out(const struct reader *reader, const json_t *root, struct shop_rules *ret_rules)
{
    const json_t *value = json_object_get(root, "sold_out");
    *ret_rules = (struct shop_rules){.rule = {{.status = 409}}, .count = 1};
    if (!value)
        return true;
    size_t count = json_array_size(value);
    if (!json_is_array(value) || count > SHOP_RULES_MAX)
        return wrong(reader, "sold_out", "is not an array of at most %d statuses. Write one such as [409]",
                     SHOP_RULES_MAX);
    for (size_t i = 0; i < count; i++) {
        char path[MEMBER_MAX];
        path_of_item("sold_out", i, path);
        if (!is_status(json_array_get(value, i), 300))
            return wrong(
                reader, path,
                "is not a status from 300 to 599. An answer with 2xx means that the units were sold; \"answers\" can "
                "say otherwise");
        ret_rules->rule[i] = (struct shop_rule){.status = json_integer_value(json_array_get(value, i))};
    }
    ret_rules->count = count;
    return true;
}

bool read_answers(const struct reader *reader, const json_t *root, struct shop_description *description)
{
    const json_t *answers = json_object_get(root, "answers");
    if (!read_sold_out(reader, root, &description->answers[SHOP_REFUSED]))
        return false;
    description->all_2xx_sold = !json_object_get(answers, "sold");
    if (!answers)
        return true;
    if (!json_is_object(answers))
        return wrong(reader, "answers",
                     "is %s. Write an object such as {\"sold\": [201], \"refused\": [409]}",
                     kind_of(answers));
    if (json_object_get(answers, "refused") && json_object_get(root, "sold_out"))
        return wrong(reader, "sold_out", "and \"refused\" in \"answers\" mean the same. Remove one of them");
    for (int meaning = 0; meaning < SHOP_MEANINGS; meaning++)
        if (!read_rules(reader, answers, (enum shop_meaning)meaning, description))
            return false;
    if (description->answers[SHOP_ACCEPTED].count > 0 && !json_object_get(root, "settled"))
        return wrong(reader, "answers.accepted",
                     "needs \"settled\". Add SQL that gives true when the accepted work has ended");
    return only_members(reader, "answers", answers, MEANINGS);
}
