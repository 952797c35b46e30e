/* Finds the end of a block of SQL in braces. Pure. Any thread. */
#ifndef OVERSELL_LOADTEST_SQLSPEC_FILE_SQL_BLOCK_H
#define OVERSELL_LOADTEST_SQLSPEC_FILE_SQL_BLOCK_H

/* TEXT begins behind the opening brace. The closing one: a brace in quotation marks, dollar quotes or a comment of the SQL does not end the block,
 * unless the SQL read in that way has no end or another opening brace: then the next brace ends it, as in PostgreSQL's isolation tester.
 * NULL: there is none. */
const char *sql_block_end(const char *text);

#endif
