// The idioms of Knex.
"use strict";

const { knex: connect } = require("knex");

module.exports = (connection) => {
  const knex = connect({ client: "pg", connection });

  const insert = (db, id, quantity) => db("order_item").insert({ product_id: id, quantity });

  return {
    naive: (id, quantity) => knex.transaction(async (trx) => {
      const product = await trx("product").where({ id }).first();
      if (product.count < quantity) return false;
      await trx("product").where({ id }).update({ count: product.count - quantity });
      await insert(trx, id, quantity);
      return true;
    }),

    // The row is locked by a statement that is not in the transaction.
    "lock-outside": (id, quantity) => knex.transaction(async (trx) => {
      const product = await knex("product").where({ id }).forUpdate().first();
      if (product.count < quantity) return false;
      await trx("product").where({ id }).update({ count: product.count - quantity });
      await insert(trx, id, quantity);
      return true;
    }),

    lock: (id, quantity) => knex.transaction(async (trx) => {
      const product = await trx("product").where({ id }).forUpdate().first();
      if (product.count < quantity) return false;
      await trx("product").where({ id }).update({ count: product.count - quantity });
      await insert(trx, id, quantity);
      return true;
    }),

    condition: (id, quantity) => knex.transaction(async (trx) => {
      const taken = await trx("product").where({ id }).where("count", ">=", quantity).decrement("count", quantity);
      if (taken === 0) return false;
      await insert(trx, id, quantity);
      return true;
    }),
  };
};
