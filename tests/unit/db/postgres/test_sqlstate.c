/* SQLSTATE to meaning: every code that is known, by its name in PostgreSQL's appendix, and some that are not. */
#include "tests/unit/unit.h"

#include "db/postgres/sqlstate.h"

static const struct {
    const char *code;
    enum db_status status;
} codes[] = {
    /* run it again */
    {"40001", DB_SERIALIZATION}, /* serialization_failure */
    {"40P01", DB_DEADLOCK},      /* deadlock_detected */
    /* waited too long */
    {"55P03", DB_LOCK_TIMEOUT}, /* lock_not_available */
    {"57014", DB_TIMEOUT},      /* query_canceled */
    /* a constraint, or a value */
    {"23505", DB_UNIQUE},       /* unique_violation */
    {"23514", DB_CHECK},        /* check_violation */
    {"23503", DB_FOREIGN_KEY},  /* foreign_key_violation */
    {"22003", DB_OUT_OF_RANGE}, /* numeric_value_out_of_range */
    /* the server or the connection has gone, for a while */
    {"08000", DB_AWAY}, /* connection_exception */
    {"08001", DB_AWAY}, /* sqlclient_unable_to_establish_sqlconnection */
    {"08003", DB_AWAY}, /* connection_does_not_exist */
    {"08006", DB_AWAY}, /* connection_failure */
    {"08P01", DB_AWAY}, /* protocol_violation */
    {"57P01", DB_AWAY}, /* admin_shutdown */
    {"57P02", DB_AWAY}, /* crash_shutdown */
    {"57P03", DB_AWAY}, /* cannot_connect_now */
    {"57P05", DB_AWAY}, /* idle_session_timeout */
    {"25P03", DB_AWAY}, /* idle_in_transaction_session_timeout */
    {"53300", DB_AWAY}, /* too_many_connections */
    /* the server is there and will not serve */
    {"53000", DB_REFUSED}, /* insufficient_resources */
    {"53100", DB_REFUSED}, /* disk_full */
    {"53200", DB_REFUSED}, /* out_of_memory */
    {"28000", DB_REFUSED}, /* invalid_authorization_specification */
    {"28P01", DB_REFUSED}, /* invalid_password */
    {"3D000", DB_REFUSED}, /* invalid_catalog_name */
    {"25006", DB_AWAY},    /* read_only_sql_transaction */
    {"42501", DB_REFUSED}, /* insufficient_privilege */
    {"58000", DB_REFUSED}, /* system_error */
    {"58030", DB_REFUSED}, /* io_error */
    /* a bug */
    {"00000", DB_ERROR}, /* successful_completion is no error: whoever asks has gone wrong */
    {"42601", DB_ERROR}, /* syntax_error */
    {"42P01", DB_ERROR}, /* undefined_table */
    {"42703", DB_ERROR}, /* undefined_column */
    {"22P02", DB_ERROR}, /* invalid_text_representation */
    {"22012", DB_ERROR}, /* division_by_zero */
    {"23502", DB_ERROR}, /* not_null_violation */
    {"23000", DB_ERROR}, /* integrity_constraint_violation */
    {"25P02", DB_ERROR}, /* in_failed_sql_transaction */
    {"40000", DB_ERROR}, /* transaction_rollback */
    {"40002", DB_ERROR}, /* transaction_integrity_constraint_violation */
    {"55000", DB_ERROR}, /* object_not_in_prerequisite_state */
    {"57000", DB_ERROR}, /* operator_intervention */
    {"XX000", DB_ERROR}, /* internal_error */
    {"ZZZZZ", DB_ERROR},
    /* near misses, and what no server sends */
    {"", DB_ERROR},
    {"0", DB_ERROR},
    {"4", DB_ERROR},
    {"4000", DB_ERROR},
    {"40p01", DB_ERROR},
    {" 40001", DB_ERROR},
    {"5", DB_ERROR},
    {"3d000", DB_ERROR},
};

static void test_codes(void **state)
{
    for (size_t i = 0; i < COUNT(codes); i++)
        if (db_status_of(codes[i].code) != codes[i].status)
            fail_msg("'%s' is %d, not %d", codes[i].code, (int)db_status_of(codes[i].code),
                     (int)codes[i].status);
}

/* libpq's own errors have no code: there was no server to give one. */
static void test_no_code(void **state)
{
    assert_int_equal(db_status_of(NULL), DB_AWAY);
}

/* Whether a COMMIT happened is never a question that an error code answers. */
static void test_no_code_is_unknown_or_success(void **state)
{
    static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char code[6] = "";
    for (const char *a = letters; *a; a++)
        for (const char *b = letters; *b; b++)
            for (const char *c = letters; *c; c++)
                for (const char *d = letters; *d; d++)
                    for (const char *e = letters; *e; e += 6) {
                        code[0] = *a, code[1] = *b, code[2] = *c, code[3] = *d, code[4] = *e;
                        enum db_status status = db_status_of(code);
                        if (status <= DB_OK || status > DB_ERROR || status == DB_UNKNOWN)
                            fail_msg("'%s' is %d", code, (int)status);
                    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_no_code),
        cmocka_unit_test(test_no_code_is_unknown_or_success),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
