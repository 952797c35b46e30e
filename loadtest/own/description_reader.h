/* What the files share that read a description. */
#ifndef OVERSELL_LOADTEST_OWN_DESCRIPTION_READER_H
#define OVERSELL_LOADTEST_OWN_DESCRIPTION_READER_H

#include "loadtest/own/description.h"

enum { MEMBER_MAX = 128 }; /* of the path of a member */

struct reader {
    const char *path, *text; /* of the file */
};

/* Says what is wrong with MEMBER, a path as json_line_of takes it. Returns false. */
__attribute__((format(printf, 3, 4))) bool wrong(const struct reader *reader, const char *member,
                                                 const char *format, ...);
/* "an object" */
const char *kind_of(const json_t *value);
/* A member of this name is one. */
bool member_is_comment(const char *name);
void path_of_member(const char *parent, const char *name, char ret_path[static MEMBER_MAX]);
void path_of_item(const char *parent, size_t index, char ret_path[static MEMBER_MAX]);
/* OBJECT, the member PARENT, has no other members than NAMES, which NULL ends, and comments. False, having said so. */
bool only_members(const struct reader *reader, const char *parent, const json_t *object,
                  const char *const *names);

/* Reads "answers" and "sold_out" of ROOT into DESCRIPTION. False, having said on stderr what is wrong. */
bool read_answers(const struct reader *reader, const json_t *root, struct shop_description *description);

#endif
