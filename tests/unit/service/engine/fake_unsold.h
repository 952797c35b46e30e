/* Giving back what an order took and did not sell: the database's statement, and the list of units that are given back
 * later. */
#ifndef OVERSELL_TESTS_UNIT_SERVICE_ENGINE_FAKE_UNSOLD_H
#define OVERSELL_TESTS_UNIT_SERVICE_ENGINE_FAKE_UNSOLD_H

#include "tests/unit/service/engine/fake_db.h"

#include "service/engine/unsold.h"

enum db_status stock_give_back(struct db *db, int64_t product_id, int64_t epoch, int64_t quantity,
                               const char *updated_by, char ret_xid[static 24])
{
    rule(db == &fake_db && product_id == FAKE_PRODUCT && quantity == FAKE_QUANTITY,
         "other units are given back");
    rule(epoch == FAKE_EPOCH, "units are given back to another stock");
    rule(strcmp(updated_by, FAKE_INSTANCE) == 0, "units given back in another name");
    rule(!fake.tx_open && fake.grants, "units are given back in a transaction, or without the lock");
    rule(fake.deadline_us > fake.now_us && fake.deadline_us <= fake.now_us + 5 * 1000000,
         "giving back has no time, or takes for ever");
    rule(!fake.given_back, "units are given back twice");
    fake.tx_count++;
    const char *result = fake_call("give");
    fake_xid(ret_xid, 24);
    fake.given_back = strcmp(result, "ok") == 0;
    fake.giving = strcmp(result, "unknown") == 0;
    return (enum db_status)meaning_of(db_results, result);
}

struct unsold_list {
    int nothing;
};
static struct unsold_list fake_list;
static struct unsold_list *fake_unsold = &fake_list;

bool unsold_list_reserve(struct unsold_list *list)
{
    rule(list == &fake_list && fake.reserved == 0, "a second place is reserved");
    fake.reserved++;
    return !fake.crowded;
}

void unsold_list_end(struct unsold_list *list, const struct unsold *unsold)
{
    static const char *const opens[] = {"units", "take", "order", "give"};
    rule(list == &fake_list && fake.reserved == 1 && !fake.crowded, "a place is used that was not reserved");
    fake.reserved--;
    if (!unsold)
        return;
    rule(unsold->product_id == FAKE_PRODUCT && unsold->quantity == FAKE_QUANTITY &&
             unsold->epoch == FAKE_EPOCH,
         "other units are left to be given back");
    rule(!fake.given_back, "units are left that were given back");
    fake_append(fake.log, sizeof fake.log, "owe-");
    snprintf(fake.log + strlen(fake.log), sizeof fake.log - strlen(fake.log), "%s", opens[unsold->open]);
    fake.owed = true;
}

#endif
