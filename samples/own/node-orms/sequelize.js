// The idioms of Sequelize.
"use strict";

const { DataTypes, Op, OptimisticLockError, Sequelize } = require("sequelize");

module.exports = async (url) => {
  const sequelize = new Sequelize(url, { logging: false, pool: { max: 10 } });
  const plain = { freezeTableName: true, timestamps: false };
  const id = { type: DataTypes.INTEGER, primaryKey: true };
  const Product = sequelize.define("product", { id, count: DataTypes.INTEGER }, plain);
  const Versioned = sequelize.define("versioned", { id, count: DataTypes.INTEGER }, { ...plain, tableName: "product", version: "version" });
  const OrderItem = sequelize.define("order_item", { product_id: DataTypes.INTEGER, quantity: DataTypes.INTEGER }, plain);
  await sequelize.authenticate();

  async function versioned(id, quantity) {
    return sequelize.transaction(async (transaction) => {
      const product = await Versioned.findByPk(id, { transaction });
      if (product.count < quantity) return false;
      await product.update({ count: product.count - quantity }, { transaction });
      await OrderItem.create({ product_id: id, quantity }, { transaction });
      return true;
    });
  }

  return {
    naive: (id, quantity) => sequelize.transaction(async (transaction) => {
      const product = await Product.findByPk(id, { transaction });
      if (product.count < quantity) return false;
      await product.update({ count: product.count - quantity }, { transaction });
      await OrderItem.create({ product_id: id, quantity }, { transaction });
      return true;
    }),

    decrement: (id, quantity) => sequelize.transaction(async (transaction) => {
      const product = await Product.findByPk(id, { transaction });
      if (product.count < quantity) return false;
      await product.decrement("count", { by: quantity, transaction });
      await OrderItem.create({ product_id: id, quantity }, { transaction });
      return true;
    }),

    lock: (id, quantity) => sequelize.transaction(async (transaction) => {
      const product = await Product.findByPk(id, { transaction, lock: transaction.LOCK.UPDATE });
      if (product.count < quantity) return false;
      await product.update({ count: product.count - quantity }, { transaction });
      await OrderItem.create({ product_id: id, quantity }, { transaction });
      return true;
    }),

    condition: (id, quantity) => sequelize.transaction(async (transaction) => {
      const where = { id, count: { [Op.gte]: quantity } };
      const [taken] = await Product.update({ count: sequelize.literal(`count - ${Number(quantity)}`) }, { where, transaction });
      if (taken === 0) return false;
      await OrderItem.create({ product_id: id, quantity }, { transaction });
      return true;
    }),

    version: async (id, quantity) => {
      for (let tries = 1; ; tries++) {
        try {
          return await versioned(id, quantity);
        } catch (error) {
          if (!(error instanceof OptimisticLockError) || tries === 10) throw error;
        }
      }
    },
  };
};
