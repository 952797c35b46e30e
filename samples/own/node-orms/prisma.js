// The idioms of Prisma.
"use strict";

const { PrismaPg } = require("@prisma/adapter-pg");
const { PrismaClient } = require("@prisma/client");

module.exports = async (connectionString) => {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString }) });
  const interactive = { maxWait: 60000, timeout: 60000 }; // the explorer holds statements for longer than the 5 s of the default

  return {
    naive: (id, quantity) => prisma.$transaction(async (tx) => {
      const product = await tx.product.findUniqueOrThrow({ where: { id } });
      if (product.count < quantity) return false;
      await tx.product.update({ where: { id }, data: { count: product.count - quantity } });
      await tx.orderItem.create({ data: { product_id: id, quantity } });
      return true;
    }, interactive),

    decrement: (id, quantity) => prisma.$transaction(async (tx) => {
      const product = await tx.product.findUniqueOrThrow({ where: { id } });
      if (product.count < quantity) return false;
      await tx.product.update({ where: { id }, data: { count: { decrement: quantity } } });
      await tx.orderItem.create({ data: { product_id: id, quantity } });
      return true;
    }, interactive),

    lock: (id, quantity) => prisma.$transaction(async (tx) => {
      const [product] = await tx.$queryRaw`SELECT count FROM product WHERE id = ${id} FOR UPDATE`;
      if (product.count < quantity) return false;
      await tx.product.update({ where: { id }, data: { count: product.count - quantity } });
      await tx.orderItem.create({ data: { product_id: id, quantity } });
      return true;
    }, interactive),

    condition: (id, quantity) => prisma.$transaction(async (tx) => {
      const taken = await tx.product.updateMany({ where: { id, count: { gte: quantity } }, data: { count: { decrement: quantity } } });
      if (taken.count === 0) return false;
      await tx.orderItem.create({ data: { product_id: id, quantity } });
      return true;
    }, interactive),
  };
};
