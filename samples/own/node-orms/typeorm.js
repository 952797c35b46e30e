// The idioms of TypeORM.
"use strict";

require("reflect-metadata");
const { DataSource, EntitySchema } = require("typeorm");

const Product = new EntitySchema({
  name: "Product",
  tableName: "product",
  columns: { id: { type: "int", primary: true }, count: { type: "int" } },
});
const Versioned = new EntitySchema({
  name: "Versioned",
  tableName: "product",
  columns: { id: { type: "int", primary: true }, count: { type: "int" }, version: { type: "int", version: true } },
});
const OrderItem = new EntitySchema({
  name: "OrderItem",
  tableName: "order_item",
  columns: { id: { type: "bigint", primary: true, generated: "increment" }, product_id: { type: "int" }, quantity: { type: "int" } },
});

module.exports = async (url) => {
  const source = await new DataSource({ type: "postgres", url, entities: [Product, Versioned, OrderItem] }).initialize();

  return {
    naive: (id, quantity) => source.transaction(async (manager) => {
      const product = await manager.findOneByOrFail(Product, { id });
      if (product.count < quantity) return false;
      product.count -= quantity;
      await manager.save(Product, product);
      await manager.insert(OrderItem, { product_id: id, quantity });
      return true;
    }),

    // save() counts the version, but does not compare it.
    "version-column": (id, quantity) => source.transaction(async (manager) => {
      const product = await manager.findOneByOrFail(Versioned, { id });
      if (product.count < quantity) return false;
      product.count -= quantity;
      await manager.save(Versioned, product);
      await manager.insert(OrderItem, { product_id: id, quantity });
      return true;
    }),

    lock: (id, quantity) => source.transaction(async (manager) => {
      const product = await manager.findOneOrFail(Product, { where: { id }, lock: { mode: "pessimistic_write" } });
      if (product.count < quantity) return false;
      await manager.update(Product, { id }, { count: product.count - quantity });
      await manager.insert(OrderItem, { product_id: id, quantity });
      return true;
    }),

    condition: (id, quantity) => source.transaction(async (manager) => {
      const taken = await manager.createQueryBuilder().update(Product).set({ count: () => "count - :quantity" })
        .where("id = :id AND count >= :quantity", { id, quantity }).execute();
      if (taken.affected === 0) return false;
      await manager.insert(OrderItem, { product_id: id, quantity });
      return true;
    }),
  };
};
